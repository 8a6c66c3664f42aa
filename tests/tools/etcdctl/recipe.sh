# etcd 3.6 for the test control plane: the API server needs RequestWatchProgress, which 3.5 of the
# distributions may lack.
# shellcheck shell=bash disable=SC2034
version=$(go list -m -f '{{.Version}}' go.etcd.io/etcd/etcdctl/v3)
binaries=(etcdctl=go.etcd.io/etcd/etcdctl/v3)
ldflags="-s -w"
