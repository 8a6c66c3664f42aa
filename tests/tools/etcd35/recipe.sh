# etcd 3.5, whose snapshots are still around: the second peer of the reader of etcd snapshots.
# shellcheck shell=bash disable=SC2034
version=$(go list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3)
binaries=(etcd35=go.etcd.io/etcd/server/v3)
ldflags="-s -w"
