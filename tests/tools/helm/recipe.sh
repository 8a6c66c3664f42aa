# Real Helm, built as its release is. Without k8sVersion* it takes the cluster for Kubernetes 1.20
# and refuses every Cilium chart; charts read the other three as .Capabilities.HelmVersion.
# The driver's recipe sources this file, so that both report the same version.
# shellcheck shell=bash disable=SC2034
version=v3.21.4
binaries=(helm=helm.sh/helm/v3/cmd/helm)
client_go_minor=$(go list -m -f '{{.Version}}' k8s.io/client-go | cut -d. -f2)
ldflags="-s -w"
ldflags+=" -X helm.sh/helm/v3/internal/version.version=$version"
ldflags+=" -X helm.sh/helm/v3/internal/version.gitCommit=813176c51bb5c181dbbd7901298ddcc104cd3417"
ldflags+=" -X helm.sh/helm/v3/internal/version.gitTreeState=clean"
for helm_package in pkg/chartutil pkg/lint/rules; do
  ldflags+=" -X helm.sh/helm/v3/$helm_package.k8sVersionMajor=1"
  ldflags+=" -X helm.sh/helm/v3/$helm_package.k8sVersionMinor=$client_go_minor"
done
