//! Flags, width and precision applied to plain values (Go `fmt/format.go`).

use std::io::Write as _;

use crate::strconv::{
    self, FloatFormat, append_float, append_quote_rune, append_quote_with, append_rune,
    decode_rune, rune_count,
};

/// The flags of one verb.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`, which clears `plus`.
    pub(super) plus_v: bool,
    /// `%#v`, which clears `sharp`.
    pub(super) sharp_v: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// The base of an integer verb.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Binary,
    Octal,
    /// `%O`: octal with `0o` in front.
    MarkedOctal,
    Decimal,
    Hex,
    UpperHex,
}

impl Flags {
    /// No flag, width or precision is set, so that output is the plain text.
    pub(super) const fn is_plain(&self) -> bool {
        !(self.minus || self.plus || self.sharp || self.space || self.zero)
            && self.width.is_none()
            && self.precision.is_none()
    }

    /// `writePadding`.
    fn write_padding(&self, out: &mut Vec<u8>, count: usize) {
        let fill = if self.zero && !self.minus { b'0' } else { b' ' };
        out.resize(out.len() + count, fill);
    }

    /// `pad`: writes `text` in the width.
    pub(super) fn pad(&self, out: &mut Vec<u8>, text: &[u8]) {
        let Some(width) = self.width.filter(|&width| width > 0) else {
            out.extend_from_slice(text);
            return;
        };
        let padding = width.saturating_sub(rune_count(text));
        if self.minus {
            out.extend_from_slice(text);
            self.write_padding(out, padding);
        } else {
            self.write_padding(out, padding);
            out.extend_from_slice(text);
        }
    }

    /// Pads with spaces even under the zero flag.
    fn pad_with_spaces(&self, out: &mut Vec<u8>, text: &[u8]) {
        Self { zero: false, ..*self }.pad(out, text);
    }

    /// `fmtBoolean`.
    pub(super) fn boolean(&self, out: &mut Vec<u8>, value: bool) {
        self.pad(out, if value { b"true" } else { b"false" });
    }

    /// `truncate`: the first `precision` characters.
    fn truncate<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let Some(precision) = self.precision else { return text };
        let mut end = 0;
        for _ in 0..precision {
            let (_, size) = decode_rune(text.get(end..).unwrap_or_default());
            if size == 0 {
                break;
            }
            end += size;
        }
        text.get(..end).unwrap_or(text)
    }

    /// `fmtS`.
    pub(super) fn string(&self, out: &mut Vec<u8>, text: &[u8]) {
        self.pad(out, self.truncate(text));
    }

    /// `fmtQ`.
    pub(super) fn quoted(&self, out: &mut Vec<u8>, text: &[u8]) {
        let text = self.truncate(text);
        let mut quoted = Vec::with_capacity(text.len() + 2);
        // `%#v` prints the text quoted as well, but never between backquotes.
        if self.sharp && strconv::can_backquote(text) {
            quoted.push(b'`');
            quoted.extend_from_slice(text);
            quoted.push(b'`');
        } else {
            append_quote_with(&mut quoted, text, b'"', self.plus);
        }
        self.pad(out, &quoted);
    }

    /// `fmtSbx`: the bytes in hexadecimal.
    pub(super) fn hex_bytes(&self, out: &mut Vec<u8>, bytes: &[u8], upper: bool) {
        let shown = bytes.get(..self.precision.unwrap_or(usize::MAX)).unwrap_or(bytes);
        if shown.is_empty() {
            self.write_padding(out, self.width.unwrap_or(0));
            return;
        }
        let table = if upper { UPPER } else { LOWER };
        let prefix = [b'0', if upper { b'X' } else { b'x' }];
        let mut text = Vec::with_capacity(shown.len() * 2 + 2);
        for (index, &byte) in shown.iter().enumerate() {
            if self.space && index > 0 {
                text.push(b' ');
            }
            if self.sharp && (self.space || index == 0) {
                text.extend_from_slice(&prefix);
            }
            text.push(table[usize::from(byte >> 4)]);
            text.push(table[usize::from(byte & 15)]);
        }
        self.pad(out, &text);
    }

    /// `fmtC`.
    pub(super) fn character(&self, out: &mut Vec<u8>, value: u64) {
        let mut text = Vec::with_capacity(4);
        append_rune(&mut text, to_rune(value));
        self.pad(out, &text);
    }

    /// `fmtQc`.
    pub(super) fn quoted_character(&self, out: &mut Vec<u8>, value: u64) {
        let mut text = Vec::with_capacity(12);
        append_quote_rune(&mut text, to_rune(value), self.plus);
        self.pad(out, &text);
    }

    /// `fmtUnicode`: `U+0078`, and the character with the sharp flag.
    pub(super) fn unicode(&self, out: &mut Vec<u8>, value: u64) {
        let digits = self.precision.unwrap_or(4).max(4);
        let number = format!("{value:04X}");
        let mut text = Vec::with_capacity(digits + 8);
        text.extend_from_slice(b"U+");
        text.resize(text.len() + digits.saturating_sub(number.len()), b'0');
        text.extend_from_slice(number.as_bytes());
        if self.sharp
            && let Ok(c) = u32::try_from(value)
            && c <= 0x10_ffff
            && strconv::is_print(c)
        {
            text.extend_from_slice(b" '");
            append_rune(&mut text, c);
            text.push(b'\'');
        }
        self.pad_with_spaces(out, &text);
    }

    /// `fmtInteger`: `bits` as a signed or unsigned integer.
    pub(super) fn integer(&self, out: &mut Vec<u8>, bits: u64, base: Base, signed: bool) {
        if base == Base::Decimal && self.is_plain() {
            // Writing to a vector cannot fail, here and below.
            if signed {
                write!(out, "{}", bits as i64).unwrap_or_default();
            } else {
                write!(out, "{bits}").unwrap_or_default();
            }
            return;
        }
        let negative = signed && (bits as i64) < 0;
        let magnitude = if negative { bits.wrapping_neg() } else { bits };
        let mut precision = self.precision.unwrap_or(0);
        match (self.precision, self.width) {
            (Some(0), _) if magnitude == 0 => {
                Self { zero: false, ..*self }.write_padding(out, self.width.unwrap_or(0));
                return;
            }
            (None, Some(width)) if self.zero && !self.minus => {
                let sign = negative || self.plus || self.space;
                precision = width.saturating_sub(usize::from(sign));
            }
            _ => {}
        }
        let mut text = Vec::with_capacity(precision.max(64) + 4);
        if negative {
            text.push(b'-');
        } else if self.plus {
            text.push(b'+');
        } else if self.space {
            text.push(b' ');
        }
        if base == Base::MarkedOctal {
            text.extend_from_slice(b"0o");
        }
        let digits = match base {
            Base::Binary => format!("{magnitude:0precision$b}", precision = clamp(precision)),
            Base::Octal | Base::MarkedOctal => {
                format!("{magnitude:0precision$o}", precision = clamp(precision))
            }
            Base::Decimal => format!("{magnitude:0precision$}", precision = clamp(precision)),
            Base::Hex => format!("{magnitude:0precision$x}", precision = clamp(precision)),
            Base::UpperHex => format!("{magnitude:0precision$X}", precision = clamp(precision)),
        };
        let zeros = precision.saturating_sub(digits.len());
        if self.sharp {
            match base {
                Base::Binary => text.extend_from_slice(b"0b"),
                Base::Octal | Base::MarkedOctal if zeros == 0 && !digits.starts_with('0') => {
                    text.push(b'0');
                }
                Base::Hex => text.extend_from_slice(b"0x"),
                Base::UpperHex => text.extend_from_slice(b"0X"),
                _ => {}
            }
        }
        text.resize(text.len() + zeros, b'0');
        text.extend_from_slice(digits.as_bytes());
        self.pad_with_spaces(out, &text);
    }

    /// `fmtFloat`: `default` is the precision without an explicit one.
    pub(super) fn float(
        &self,
        out: &mut Vec<u8>,
        value: f64,
        format: FloatFormat,
        default: Option<usize>,
    ) {
        let precision = self.precision.or(default);
        if self.is_plain() && value.is_finite() {
            append_float(out, value, format, precision);
            return;
        }
        let mut number = Vec::with_capacity(24);
        append_float(&mut number, value, format, precision);
        if !matches!(number.first(), Some(b'-' | b'+')) {
            number.insert(0, b'+');
        }
        if self.space && !self.plus && number.first() == Some(&b'+') {
            number[0] = b' ';
        }
        if !value.is_finite() {
            let signless = if value.is_nan() {
                !self.space && !self.plus
            } else {
                // Infinity keeps its sign.
                false
            };
            self.pad_with_spaces(out, &number[usize::from(signless)..]);
            return;
        }
        if self.sharp && format != FloatFormat::Binary {
            restore_zeros(&mut number, format, precision);
        }
        if self.plus || number.first() != Some(&b'+') {
            if let Some(width) = self.width
                && self.zero
                && !self.minus
                && width > number.len()
            {
                out.push(number[0]);
                self.write_padding(out, width - number.len());
                out.extend_from_slice(&number[1..]);
                return;
            }
            self.pad(out, &number);
            return;
        }
        self.pad(out, &number[1..]);
    }
}

/// Rust formats to at most 65535 digits; whatever is wanted beyond is added as zeros.
const fn clamp(precision: usize) -> usize {
    if precision > 64 { 64 } else { precision }
}

/// What the sharp flag does to a float: a point always, and trailing zeros for the verbs
/// that drop them. `number` has its sign in front.
fn restore_zeros(number: &mut Vec<u8>, format: FloatFormat, precision: Option<usize>) {
    let is_hex = matches!(format, FloatFormat::Hex { .. });
    let mut missing = match format {
        FloatFormat::General { .. } | FloatFormat::Hex { upper: false } => {
            precision.map_or(6, |precision| precision as i64)
        }
        _ => 0,
    };
    let mut tail = Vec::new();
    let (mut seen_point, mut seen_nonzero) = (false, false);
    let mut index = 1;
    while let Some(&byte) = number.get(index) {
        match byte {
            b'.' => seen_point = true,
            b'p' | b'P' => tail = number.split_off(index),
            b'e' | b'E' if !is_hex => tail = number.split_off(index),
            _ => {
                seen_nonzero |= byte != b'0';
                if seen_nonzero {
                    missing -= 1;
                }
            }
        }
        index += 1;
    }
    if !seen_point {
        if number.len() == 2 && number.last() == Some(&b'0') {
            missing -= 1;
        }
        number.push(b'.');
    }
    number.resize(number.len() + usize::try_from(missing).unwrap_or(0), b'0');
    number.append(&mut tail);
}

fn to_rune(value: u64) -> u32 {
    u32::try_from(value).ok().filter(|&c| c <= 0x10_ffff).unwrap_or(strconv::RUNE_ERROR)
}
