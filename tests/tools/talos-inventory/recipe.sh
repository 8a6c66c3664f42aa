# Talos' inventory of bootstrap manifests: filled as machined fills it, and synced by the library
# that `talosctl upgrade-k8s` syncs with, whose decision to prune tests look at.
# shellcheck shell=bash disable=SC2034
version=$(go list -m -f '{{.Version}}' github.com/siderolabs/go-kubernetes)
binaries=(talos-inventory=.)
