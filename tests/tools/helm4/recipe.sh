# Helm 4, to have records of the next major version: what Helm 3 does not know must survive.
# shellcheck shell=bash disable=SC2034
version=v4.3.2
binaries=(helm4=helm.sh/helm/v4/cmd/helm)
ldflags="-s -w -X helm.sh/helm/v4/internal/version.version=$version"
