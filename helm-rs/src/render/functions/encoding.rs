//! Base64, Base32, JSON and YAML.

use gotemplate::FunctionMap;

pub(super) fn register(functions: &mut FunctionMap) {
    let _ = functions;
}
