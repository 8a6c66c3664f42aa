//! Go's `fmt` for template values.
//!
//! What `{{ .x }}`, `print`, `printf` and `toString` write, including what Go writes about
//! verbs that do not fit (`%!d(string=hi)`).
//!
//! ```
//! use gotemplate::{Value, fmt};
//!
//! let text = fmt::sprintf(b"%05.1f|%-4s|%d", &[Value::Float(3.14159), "ab".into(), "x".into()]);
//! assert_eq!(text, b"003.1|ab  |%!d(string=x)");
//! assert_eq!(fmt::to_string(&Value::Float(1_234_567.0)), "1.234567e+06");
//! ```
//!
//! Two things are bounded that are not in Go, where a map that contains itself ends the
//! program: nesting and total size. Output stops there.

mod directive;
mod format;
mod print;

use print::Printer;

use crate::value::{Str, Value};

/// Output of one call beyond this many bytes is cut off.
pub const MAX_OUTPUT: usize = 256 << 20;

/// `fmt.Sprint`: the values one after the other, with a space between two that are not
/// strings.
pub fn sprint(args: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    append_print(&mut out, args);
    out
}

/// `fmt.Sprintln`: the values with spaces between them and a newline at the end.
pub fn sprintln(args: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    Printer::new(&mut out).print_line(args);
    out
}

/// `fmt.Sprintf`.
pub fn sprintf(format: &[u8], args: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(format.len() + 16 * args.len());
    append_printf(&mut out, format, args);
    out
}

/// The value as `%v` prints it: `fmt.Sprintf("%v", value)`, and equally `fmt.Sprint(value)`.
pub fn to_string(value: &Value) -> Str {
    match value {
        Value::String(text) => text.clone(),
        Value::Nil => "<nil>".into(),
        _ => {
            let mut out = Vec::new();
            append_value(&mut out, value);
            out.into()
        }
    }
}

/// Appends the value as `%v` prints it.
pub fn append_value(out: &mut Vec<u8>, value: &Value) {
    if let Value::String(text) = value {
        out.extend_from_slice(text.as_bytes());
    } else {
        Printer::new(out).print_arg(value, 'v'.into());
    }
}

/// Appends what [`sprint`] gives.
pub fn append_print(out: &mut Vec<u8>, args: &[Value]) {
    Printer::new(out).print(args);
}

/// Appends what [`sprintf`] gives.
pub fn append_printf(out: &mut Vec<u8>, format: &[u8], args: &[Value]) {
    Printer::new(out).print_format(format, args);
}

/// Appends the value as an action prints it (`text/template` `printableValue`): nil is
/// `<no value>`, and a pointer without a text of its own prints what it points to.
pub fn append_printable(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.extend_from_slice(b"<no value>"),
        Value::Object(object) => match object.addressed_string() {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => Printer::new(out).print_pointee(value, true),
        },
        _ => append_value(out, value),
    }
}

/// Appends what the value points to, as `%v` prints that.
pub(crate) fn append_pointee(out: &mut Vec<u8>, value: &Value) {
    Printer::new(out).print_pointee(value, false);
}
