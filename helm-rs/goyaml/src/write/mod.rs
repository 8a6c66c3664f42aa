//! Writing YAML: order of keys, choice of styles, layout.

mod analyze;
mod emitter;
mod order;
mod text;
mod v2;
mod v3;

pub(crate) use v2::to_yaml;
pub(crate) use v3::to_yaml_pretty;

/// Which go-yaml is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// `toYaml`: folds lines, does not indent sequences below keys.
    V2,
    /// `toYamlPretty`: neither.
    V3,
}
