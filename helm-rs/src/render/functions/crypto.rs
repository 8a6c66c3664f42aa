//! Certificates, keys, passwords and ciphers.

use gotemplate::FunctionMap;

pub(super) fn register(functions: &mut FunctionMap) {
    let _ = functions;
}
