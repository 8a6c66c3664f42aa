# A long-lived process over Helm's own packages, for comparisons of many small cases. Built with
# Helm's own flags, so that charts see the same versions in both.
# shellcheck shell=bash disable=SC2034
source ../helm/recipe.sh
binaries=(helm-driver=.)
