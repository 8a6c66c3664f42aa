//! Formats and their directives (Go `fmt/print.go`, `doPrintf`).

use super::format::Flags;
use super::print::{Printer, verb};
use crate::strconv::decode_rune;
use crate::value::Value;

/// Widths and precisions beyond this are ignored (`tooLarge`).
const MAX_NUMBER: i64 = 1_000_000;

/// The state of reading one format.
struct Cursor<'f> {
    format: &'f [u8],
    at: usize,
    /// The next argument.
    arg: usize,
    /// Whether an explicit index occurred, so that unused arguments are not reported.
    reordered: bool,
    /// Whether the explicit indexes of this directive fit.
    good: bool,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    /// `parsenum`; a number that is too large ends the format.
    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            let value: i64 = number.unwrap_or(0);
            if value > MAX_NUMBER {
                self.at = self.format.len();
                return None;
            }
            number = Some(value * 10 + i64::from(digit - b'0'));
            self.at += 1;
        }
        number.and_then(|number| usize::try_from(number).ok())
    }

    /// `argNumber`: an explicit index, if there is one here.
    fn arg_number(&mut self, args: usize) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = self.format.get(self.at..).unwrap_or_default();
        let close = rest.iter().position(|&b| b == b']').filter(|_| rest.len() >= 3);
        let Some(close) = close else {
            self.good = false;
            self.at += 1;
            return false;
        };
        let digits = rest.get(1..close).unwrap_or_default();
        let mut inner = Cursor { format: digits, at: 0, arg: 0, reordered: false, good: true };
        let number = inner.number();
        let complete = inner.at == digits.len() && !digits.is_empty();
        self.at += close + 1;
        match number.filter(|_| complete) {
            Some(number) if (1..=args).contains(&number) => {
                self.arg = number - 1;
                true
            }
            Some(_) => {
                self.good = false;
                true
            }
            None => {
                self.good = false;
                false
            }
        }
    }

    /// `intFromArg`: the next argument as a width or precision.
    fn int_arg(&mut self, args: &[Value]) -> Option<i64> {
        let arg = args.get(self.arg)?;
        self.arg += 1;
        let plain;
        let arg = match arg {
            Value::Object(object) => {
                plain = object.underlying();
                plain.as_ref()?
            }
            _ => arg,
        };
        let Value::Int(int) = arg else { return None };
        let value = i64::try_from(int.to_i128()).ok()?;
        (-MAX_NUMBER..=MAX_NUMBER).contains(&value).then_some(value)
    }
}

impl Printer<'_> {
    /// `doPrintf`.
    pub(super) fn print_format(&mut self, format: &[u8], args: &[Value]) {
        let mut cursor = Cursor { format, at: 0, arg: 0, reordered: false, good: true };
        while let Some(rest) = format.get(cursor.at..).filter(|rest| !rest.is_empty()) {
            let text = rest.iter().position(|&b| b == b'%').unwrap_or(rest.len());
            self.out.extend_from_slice(rest.get(..text).unwrap_or_default());
            cursor.at += text;
            if cursor.at >= format.len() || self.out.len() > self.limit {
                break;
            }
            cursor.at += 1;
            cursor.good = true;
            if !self.print_directive(&mut cursor, args) {
                break;
            }
        }
        if !cursor.reordered && cursor.arg < args.len() {
            self.print_extra(args.get(cursor.arg..).unwrap_or_default());
        }
    }

    /// One directive after its `%`; false when the format ended inside.
    fn print_directive(&mut self, cursor: &mut Cursor<'_>, args: &[Value]) -> bool {
        self.flags = Flags::default();
        while let Some(c) = cursor.peek() {
            match c {
                b'#' => self.flags.sharp = true,
                b'0' => self.flags.zero = true,
                b'+' => self.flags.plus = true,
                b'-' => self.flags.minus = true,
                b' ' => self.flags.space = true,
                _ => break,
            }
            cursor.at += 1;
        }
        let mut after_index = cursor.arg_number(args.len());
        if cursor.peek() == Some(b'*') {
            cursor.at += 1;
            match cursor.int_arg(args) {
                Some(width) => {
                    self.flags.width = Some(width.unsigned_abs() as usize);
                    if width < 0 {
                        self.flags.minus = true;
                        self.flags.zero = false;
                    }
                }
                None => self.out.extend_from_slice(b"%!(BADWIDTH)"),
            }
            after_index = false;
        } else {
            self.flags.width = cursor.number();
            if after_index && self.flags.width.is_some() {
                cursor.good = false;
            }
        }
        if cursor.peek() == Some(b'.') && cursor.at + 1 < cursor.format.len() {
            cursor.at += 1;
            if after_index {
                cursor.good = false;
            }
            after_index = cursor.arg_number(args.len());
            if cursor.peek() == Some(b'*') {
                cursor.at += 1;
                self.flags.precision =
                    cursor.int_arg(args).and_then(|precision| usize::try_from(precision).ok());
                if self.flags.precision.is_none() {
                    self.out.extend_from_slice(b"%!(BADPREC)");
                }
                after_index = false;
            } else {
                self.flags.precision = Some(cursor.number().unwrap_or(0));
            }
        }
        if !after_index {
            cursor.arg_number(args.len());
        }
        let (c, size) = decode_rune(cursor.format.get(cursor.at..).unwrap_or_default());
        if size == 0 {
            self.out.extend_from_slice(b"%!(NOVERB)");
            return false;
        }
        cursor.at += size;
        if c == verb('%') {
            self.out.push(b'%');
            return true;
        }
        if !cursor.good {
            self.complain(c, b"(BADINDEX)");
            return true;
        }
        let Some(arg) = args.get(cursor.arg) else {
            self.complain(c, b"(MISSING)");
            return true;
        };
        if c == verb('v') || c == verb('w') {
            self.flags.sharp_v = std::mem::take(&mut self.flags.sharp);
            self.flags.plus_v = std::mem::take(&mut self.flags.plus);
        }
        self.print_arg(arg, c);
        cursor.arg += 1;
        true
    }

    fn print_extra(&mut self, extra: &[Value]) {
        self.flags = Flags::default();
        self.out.extend_from_slice(b"%!(EXTRA ");
        for (index, arg) in extra.iter().enumerate() {
            if index > 0 {
                self.out.extend_from_slice(b", ");
            }
            if !matches!(arg, Value::Nil) {
                self.out.extend_from_slice(arg.type_name().as_bytes());
                self.out.push(b'=');
            }
            self.print_arg(arg, verb('v'));
        }
        self.out.push(b')');
    }
}
