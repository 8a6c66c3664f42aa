# The patch libraries that Helm stands on (strategicpatch, jsonmergepatch, json-patch) behind JSON
# lines, and the generator of helm-rs/patch/src/schema/table.txt: `patch-peer table`.
# shellcheck shell=bash disable=SC2034
source ../helm/recipe.sh
binaries=(patch-peer=.)
