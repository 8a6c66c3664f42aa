//! Semantic versions and constraints.

use gotemplate::FunctionMap;

pub(super) fn register(functions: &mut FunctionMap) {
    let _ = functions;
}
