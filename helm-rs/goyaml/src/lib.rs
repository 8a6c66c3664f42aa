//! YAML and JSON as Go and Helm read and write them.
