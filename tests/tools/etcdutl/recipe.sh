# etcd 3.6 for the test control plane: the API server needs RequestWatchProgress, which 3.5 of the
# distributions may lack.
# shellcheck shell=bash disable=SC2034
version=$(go list -m -f '{{.Version}}' go.etcd.io/etcd/etcdutl/v3)
binaries=(etcdutl=go.etcd.io/etcd/etcdutl/v3)
ldflags="-s -w"
