# An OCI registry: the distribution project's, which charts are pushed to and pulled from.
# shellcheck shell=bash disable=SC2034
version=v3.1.1
binaries=(registry=github.com/distribution/distribution/v3/cmd/registry)
ldflags="-s -w"
