# A browser, to open reports in.
# shellcheck shell=bash disable=SC2034
debian=chromium
