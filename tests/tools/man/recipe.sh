# Renders manual pages, and warns of what is wrong in them.
# shellcheck shell=bash disable=SC2034
debian=man-db
