//! Slash-separated paths: Go's `path`. `path/filepath` is the same on the systems that Helm
//! runs on in clusters, so the `os…` functions share the code.

use bstr::ByteSlice;
use gotemplate::{Function, FunctionMap, Str};

pub(super) fn register(functions: &mut FunctionMap) {
    for name in ["base", "osBase"] {
        functions.insert(name, Function::new(|path: Str| base(&path)));
    }
    for name in ["dir", "osDir"] {
        functions.insert(name, Function::new(|path: Str| clean(split(&path).0)));
    }
    for name in ["clean", "osClean"] {
        functions.insert(name, Function::new(|path: Str| clean(&path)));
    }
    for name in ["ext", "osExt"] {
        functions.insert(name, Function::new(|path: Str| extension(&path)));
    }
    for name in ["isAbs", "osIsAbs"] {
        functions.insert(name, Function::new(|path: Str| path.starts_with(b"/")));
    }
}

/// The directory with its slash, and the last element.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.rfind_byte(b'/').map_or(0, |slash| slash + 1))
}

/// `path.Base`.
fn base(path: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let (_, last) = split(path.get(..end).unwrap_or_default());
    if last.is_empty() { b"/".to_vec() } else { last.to_vec() }
}

/// `path.Ext`: from the last dot of the last element.
fn extension(path: &[u8]) -> Vec<u8> {
    let (_, last) = split(path);
    last.rfind_byte(b'.').and_then(|dot| last.get(dot..)).unwrap_or_default().to_vec()
}

/// `path.Clean`: the shortest equivalent path, by text alone.
pub(super) fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let mut out = if rooted { b"/".to_vec() } else { Vec::new() };
    out.extend_from_slice(&parts.join(&b'/'));
    if out.is_empty() { b".".to_vec() } else { out }
}
