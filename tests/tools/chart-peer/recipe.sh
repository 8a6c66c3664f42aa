# Helm's packages for charts, values and manifests behind JSON lines: it answers the cases under
# helm-rs/tests/chart_cases.
# shellcheck shell=bash disable=SC2034
source ../helm/recipe.sh
binaries=(chart-peer=.)
