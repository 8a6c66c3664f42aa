# The servers of the test control plane and kubectl. Without these flags they report v0.0.0-master,
# which Helm, Cilium's chart and every version check in this project would judge.
# shellcheck shell=bash disable=SC2034
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
binaries=(
  kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver
  kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager
  kube-scheduler=k8s.io/kubernetes/cmd/kube-scheduler
  kubectl=k8s.io/kubernetes/cmd/kubectl
)
# A module carries no commit: its content digest from go.sum stands in, and the tree is an archive.
kubernetes_digest=$(sed -n "s|^k8s.io/kubernetes $version h1:||p" go.sum | base64 -d | od -An -v -tx1 | tr -d ' \n' | cut -c1-40)
kubernetes_minor=$(cut -d. -f2 <<<"$version")
ldflags="-s -w"
for version_package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags+=" -X $version_package.gitVersion=$version"
  ldflags+=" -X $version_package.gitMajor=1"
  ldflags+=" -X $version_package.gitMinor=$kubernetes_minor"
  ldflags+=" -X $version_package.gitCommit=$kubernetes_digest"
  ldflags+=" -X $version_package.gitTreeState=archive"
  # The day the module was published, so that two builds are the same to the byte.
  ldflags+=" -X $version_package.buildDate=2026-08-20T11:51:43Z"
done
