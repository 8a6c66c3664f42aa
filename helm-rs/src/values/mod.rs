//! Values: what users pass, what charts default to, and how they become one.
//!
//! [`Options::merge`] reads values files and the `--set` family into user values;
//! [`process_dependencies`] lets them choose the subcharts; [`coalesce_values`] joins them with
//! the charts' own; [`validate`] holds the result against `values.schema.json`.

mod coalesce;
mod dependencies;
mod graph;
mod options;
mod schema;
mod set;

use goyaml::{Map, Value};

pub use coalesce::{
    CoalesceError, GLOBAL_KEY, Nulls, SharedValues, coalesce_shared, coalesce_tables,
    coalesce_values, merge_values,
};
pub use dependencies::{missing_dependencies, process_dependencies};
pub use graph::{Graph, Node, TableId};
pub use options::{Options, OptionsError, ReadError, merge_maps};
pub use schema::{SchemaCache, SchemaError, validate, validate_schema};
pub use set::{
    FileError, SetError, parse_file, parse_json, parse_literal, parse_set, parse_set_string,
};

/// The value at a path of keys joined by dots that is not a table, as `Values.PathValue`.
pub fn path_value<'a>(values: &'a Map, path: &str) -> Option<&'a Value> {
    let (tables, key) = match path.rsplit_once('.') {
        Some((tables, key)) => (Some(tables), key),
        None => (None, path),
    };
    let table = match tables {
        Some(tables) => table(values, tables)?,
        None => values,
    };
    table.get(key).filter(|value| value.as_map().is_none())
}

/// The table at a path of keys joined by dots, as `Values.Table`.
pub fn table<'a>(values: &'a Map, path: &str) -> Option<&'a Map> {
    path.split('.').try_fold(values, |table, key| table.get(key)?.as_map())
}
