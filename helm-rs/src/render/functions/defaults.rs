//! Defaults: empty values and what to use in their place.

use gotemplate::FunctionMap;

pub(super) fn register(functions: &mut FunctionMap) {
    let _ = functions;
}
