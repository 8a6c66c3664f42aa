# Go's own types beside the reader of etcd snapshots, and the generator of
# etcd/src/storage/kinds.txt: `etcd-peer table`.
# shellcheck shell=bash disable=SC2034
version=$(go list -m -f '{{.Version}}' k8s.io/api)
binaries=(etcd-peer=.)
ldflags="-s -w"
