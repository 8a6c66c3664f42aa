//! Between template values and the trees that YAML and JSON code works on.
