//! Verbs applied to values (Go `fmt/print.go`).

use super::MAX_OUTPUT;
use super::format::{Base, Flags};
use crate::strconv::{FloatFormat, append_rune};
use crate::value::{Complex, Int, Kind, List, Map, Object, Value};

/// Values nested deeper are cut off; Go overflows its stack on a map inside itself.
const MAX_DEPTH: usize = 1000;

/// Stands for every address, so that output does not change from run to run.
const ADDRESS: u64 = 0xc0_0000_0000;

/// One call of a print function (`pp`).
pub(super) struct Printer<'o> {
    pub(super) out: &'o mut Vec<u8>,
    pub(super) flags: Flags,
    /// Inside the report of a verb that does not fit: no more texts of objects.
    erroring: bool,
    pub(super) limit: usize,
}

pub(super) type Verb = u32;

pub(super) const fn verb(c: char) -> Verb {
    c as Verb
}

impl<'o> Printer<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        let limit = out.len().saturating_add(MAX_OUTPUT);
        Self { out, flags: Flags::default(), erroring: false, limit }
    }

    /// `doPrint`.
    pub(super) fn print(&mut self, args: &[Value]) {
        let mut after_string = true;
        for (index, arg) in args.iter().enumerate() {
            let is_string = arg.kind() == Kind::String;
            if index > 0 && !is_string && !after_string {
                self.out.push(b' ');
            }
            self.print_arg(arg, verb('v'));
            after_string = is_string;
        }
    }

    /// `doPrintln`.
    pub(super) fn print_line(&mut self, args: &[Value]) {
        for (index, arg) in args.iter().enumerate() {
            if index > 0 {
                self.out.push(b' ');
            }
            self.print_arg(arg, verb('v'));
        }
        self.out.push(b'\n');
    }

    pub(super) fn complain(&mut self, c: Verb, what: &[u8]) {
        self.out.extend_from_slice(b"%!");
        append_rune(self.out, c);
        self.out.extend_from_slice(what);
    }

    /// `badVerb`; `value` is none for an untyped nil.
    fn bad_verb(&mut self, c: Verb, value: Option<&Value>) {
        self.erroring = true;
        self.complain(c, b"(");
        match value {
            None | Some(Value::Nil) => self.out.extend_from_slice(b"<nil>"),
            Some(value) => {
                self.out.extend_from_slice(value.type_name().as_bytes());
                self.out.push(b'=');
                self.print_arg(value, verb('v'));
            }
        }
        self.out.push(b')');
        self.erroring = false;
    }

    /// `printArg`.
    pub(super) fn print_arg(&mut self, arg: &Value, c: Verb) {
        if matches!(arg, Value::Nil) {
            if c == verb('T') || c == verb('v') {
                self.flags.pad(self.out, b"<nil>");
            } else {
                self.bad_verb(c, None);
            }
        } else if c == verb('T') {
            self.flags.string(self.out, arg.type_name().as_bytes());
        } else if c == verb('p') {
            self.print_pointer(arg, c);
        } else if let Value::Bytes(bytes) = arg {
            self.print_bytes(bytes.as_bytes(), c, arg, "[]byte");
        } else if !self.handle_methods(arg, c) {
            self.print_value(arg, c, 0);
        }
    }

    /// `handleMethods`: the text of an object that has one.
    fn handle_methods(&mut self, arg: &Value, c: Verb) -> bool {
        if self.erroring {
            return false;
        }
        if c == verb('w')
            && matches!(arg, Value::List(_) | Value::Map(_) | Value::Object(_))
            && Complex::of(arg).is_none()
        {
            self.bad_verb(c, Some(arg));
            return true;
        }
        let Value::Object(object) = arg else { return false };
        if self.flags.sharp_v || !matches!(char::from_u32(c), Some('v' | 's' | 'x' | 'X' | 'q')) {
            return false;
        }
        match object.string() {
            Some(text) => {
                self.print_string(text.as_bytes(), c, arg);
                true
            }
            None => false,
        }
    }

    /// `printValue`.
    fn print_value(&mut self, value: &Value, c: Verb, depth: usize) {
        if depth > MAX_DEPTH || self.out.len() > self.limit {
            self.out.extend_from_slice(b"...");
            return;
        }
        if depth > 0 && self.handle_methods(value, c) {
            return;
        }
        match value {
            // Only reached inside a list, map or struct: a nil interface there.
            Value::Nil if self.flags.sharp_v => {
                self.out.extend_from_slice(b"interface {}(nil)");
            }
            Value::Nil => self.out.extend_from_slice(b"<nil>"),
            Value::Bytes(bytes) => match char::from_u32(c) {
                Some('s' | 'q' | 'x' | 'X') => {
                    self.print_bytes(bytes.as_bytes(), c, value, "[]uint8");
                }
                _ => self.print_byte_list(bytes.as_bytes(), c),
            },
            Value::List(list) => self.print_list(list, c, depth),
            Value::Map(map) => self.print_map(map, c, depth),
            Value::Object(object) => self.print_object(object.as_ref(), value, c, depth),
            _ => self.print_plain(value, value, c),
        }
    }

    /// A value of a basic kind; `shown` is what a complaint names.
    fn print_plain(&mut self, value: &Value, shown: &Value, c: Verb) {
        match value {
            Value::Bool(flag) => match char::from_u32(c) {
                Some('t' | 'v') => self.flags.boolean(self.out, *flag),
                _ => self.bad_verb(c, Some(shown)),
            },
            Value::Int(int) => self.print_integer(*int, c, shown),
            Value::Float(number) => self.print_float(*number, c, shown),
            Value::String(text) => self.print_string(text.as_bytes(), c, shown),
            _ => self.bad_verb(c, Some(shown)),
        }
    }

    /// `fmtInteger`.
    fn print_integer(&mut self, int: Int, c: Verb, shown: &Value) {
        let bits = int.bits as u64;
        let signed = !int.kind.is_unsigned();
        let base = match char::from_u32(c) {
            Some('v') if self.flags.sharp_v && !signed => {
                self.print_address(bits, true);
                return;
            }
            Some('v' | 'd') => Base::Decimal,
            Some('b') => Base::Binary,
            Some('o') => Base::Octal,
            Some('O') => Base::MarkedOctal,
            Some('x') => Base::Hex,
            Some('X') => Base::UpperHex,
            Some('c') => return self.flags.character(self.out, bits),
            Some('q') => return self.flags.quoted_character(self.out, bits),
            Some('U') => return self.flags.unicode(self.out, bits),
            _ => return self.bad_verb(c, Some(shown)),
        };
        self.flags.integer(self.out, bits, base, signed);
    }

    /// `fmt0x64`.
    fn print_address(&mut self, value: u64, prefix: bool) {
        let flags = Flags { sharp: prefix, ..self.flags };
        flags.integer(self.out, value, Base::Hex, false);
    }

    /// `fmtFloat`.
    fn print_float(&mut self, value: f64, c: Verb, shown: &Value) {
        let (format, default) = match char::from_u32(c) {
            Some('v' | 'g') => (FloatFormat::General { upper: false }, None),
            Some('G') => (FloatFormat::General { upper: true }, None),
            Some('b') => (FloatFormat::Binary, None),
            Some('x') => (FloatFormat::Hex { upper: false }, None),
            Some('X') => (FloatFormat::Hex { upper: true }, None),
            Some('f' | 'F') => (FloatFormat::Fixed, Some(6)),
            Some('e') => (FloatFormat::Exponent { upper: false }, Some(6)),
            Some('E') => (FloatFormat::Exponent { upper: true }, Some(6)),
            _ => return self.bad_verb(c, Some(shown)),
        };
        self.flags.float(self.out, value, format, default);
    }

    /// `fmtComplex`.
    fn print_complex(&mut self, number: Complex, c: Verb, shown: &Value) {
        let fits = matches!(
            char::from_u32(c),
            Some('v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E')
        );
        if !fits {
            return self.bad_verb(c, Some(shown));
        }
        let plus = self.flags.plus;
        self.out.push(b'(');
        self.print_float(number.real, c, shown);
        self.flags.plus = true;
        self.print_float(number.imaginary, c, shown);
        self.out.extend_from_slice(b"i)");
        self.flags.plus = plus;
    }

    /// `fmtString`.
    fn print_string(&mut self, text: &[u8], c: Verb, shown: &Value) {
        match char::from_u32(c) {
            Some('v') if self.flags.sharp_v => self.flags.quoted(self.out, text),
            Some('v' | 's') => self.flags.string(self.out, text),
            Some('x') => self.flags.hex_bytes(self.out, text, false),
            Some('X') => self.flags.hex_bytes(self.out, text, true),
            Some('q') => self.flags.quoted(self.out, text),
            _ => self.bad_verb(c, Some(shown)),
        }
    }

    /// `fmtBytes`.
    fn print_bytes(&mut self, bytes: &[u8], c: Verb, shown: &Value, type_name: &str) {
        match char::from_u32(c) {
            Some('v' | 'd') if self.flags.sharp_v => {
                self.out.extend_from_slice(type_name.as_bytes());
                self.out.push(b'{');
                for (index, &byte) in bytes.iter().enumerate() {
                    if index > 0 {
                        self.out.extend_from_slice(b", ");
                    }
                    self.print_address(u64::from(byte), true);
                }
                self.out.push(b'}');
            }
            Some('v' | 'd') => {
                self.out.push(b'[');
                for (index, &byte) in bytes.iter().enumerate() {
                    if index > 0 {
                        self.out.push(b' ');
                    }
                    self.flags.integer(self.out, u64::from(byte), Base::Decimal, false);
                }
                self.out.push(b']');
            }
            Some('s') => self.flags.string(self.out, bytes),
            Some('x' | 'X' | 'q') => self.print_string(bytes, c, shown),
            _ => self.print_byte_list(bytes, c),
        }
    }

    /// Bytes as a slice of `uint8`, one by one.
    fn print_byte_list(&mut self, bytes: &[u8], c: Verb) {
        self.open_list("[]uint8");
        for (index, &byte) in bytes.iter().enumerate() {
            self.separate(index);
            let int = Int { kind: crate::value::IntKind::Uint8, bits: i64::from(byte) };
            self.print_integer(int, c, &Value::Int(int));
        }
        self.close_list();
    }

    fn open_list(&mut self, type_name: &str) {
        if self.flags.sharp_v {
            self.out.extend_from_slice(type_name.as_bytes());
            self.out.push(b'{');
        } else {
            self.out.push(b'[');
        }
    }

    fn close_list(&mut self) {
        self.out.push(if self.flags.sharp_v { b'}' } else { b']' });
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            let separator: &[u8] = if self.flags.sharp_v { b", " } else { b" " };
            self.out.extend_from_slice(separator);
        }
    }

    fn print_list(&mut self, list: &List, c: Verb, depth: usize) {
        if self.flags.sharp_v && list.is_nil() {
            self.print_typed_nil(list.ty().name);
            return;
        }
        self.open_list(list.ty().name);
        for (index, item) in list.items().iter().enumerate() {
            if self.out.len() > self.limit {
                break;
            }
            self.separate(index);
            self.print_value(item, c, depth + 1);
        }
        self.close_list();
    }

    fn print_typed_nil(&mut self, type_name: &str) {
        self.out.extend_from_slice(type_name.as_bytes());
        self.out.extend_from_slice(b"(nil)");
    }

    fn print_map(&mut self, map: &Map, c: Verb, depth: usize) {
        if self.flags.sharp_v && map.is_nil() {
            self.print_typed_nil(map.ty().name);
            return;
        }
        if self.flags.sharp_v {
            self.open_list(map.ty().name);
        } else {
            self.out.extend_from_slice(b"map[");
        }
        for (index, (key, value)) in map.entries().iter().enumerate() {
            if self.out.len() > self.limit {
                break;
            }
            self.separate(index);
            self.print_string(key.as_bytes(), c, &Value::String(key.clone()));
            self.out.push(b':');
            self.print_value(value, c, depth + 1);
        }
        self.close_list();
    }

    fn print_object(&mut self, object: &dyn Object, value: &Value, c: Verb, depth: usize) {
        if let Some(plain) = object.underlying() {
            self.print_plain(&plain, value, c);
            return;
        }
        if let Some(number) = Complex::of(value) {
            return self.print_complex(number, c, value);
        }
        match object.kind() {
            Kind::Struct => self.print_struct(object, object.type_name(), c, depth),
            Kind::Ptr if depth == 0 && !object.is_nil() => {
                self.out.push(b'&');
                self.print_struct(object, pointee_name(object), c, depth + 1);
            }
            Kind::Ptr | Kind::Func => self.print_pointer(value, c),
            _ => {
                self.out.push(b'?');
                self.out.extend_from_slice(object.type_name().as_bytes());
                self.out.push(b'?');
            }
        }
    }

    /// What a value points to, and other values as they are. `with_text`: a pointer with a
    /// text of its own prints that.
    pub(super) fn print_pointee(&mut self, value: &Value, with_text: bool) {
        match value {
            Value::Object(object)
                if object.kind() == Kind::Ptr
                    && !object.is_nil()
                    && object.underlying().is_none()
                    && !(with_text && object.string().is_some()) =>
            {
                if let Some(text) = object.pointee_string() {
                    self.out.extend_from_slice(text.as_bytes());
                } else {
                    let object = object.as_ref();
                    self.print_struct(object, pointee_name(object), verb('v'), 0);
                }
            }
            _ => self.print_arg(value, verb('v')),
        }
    }

    fn print_struct(&mut self, object: &dyn Object, type_name: &str, c: Verb, depth: usize) {
        if self.flags.sharp_v {
            self.out.extend_from_slice(type_name.as_bytes());
        }
        self.out.push(b'{');
        for (index, (name, field)) in object.all_fields().into_iter().enumerate() {
            self.separate(index);
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.extend_from_slice(name.as_bytes());
                self.out.push(b':');
            }
            self.print_value(&field, c, depth + 1);
        }
        self.out.push(b'}');
    }

    /// `fmtPointer`.
    fn print_pointer(&mut self, value: &Value, c: Verb) {
        let address = match value {
            Value::Bytes(_) | Value::List(_) | Value::Map(_) => ADDRESS,
            Value::Object(object) if matches!(object.kind(), Kind::Ptr | Kind::Func) => {
                if object.is_nil() { 0 } else { ADDRESS }
            }
            _ => return self.bad_verb(c, Some(value)),
        };
        match char::from_u32(c) {
            Some('v') if self.flags.sharp_v => {
                self.out.push(b'(');
                self.out.extend_from_slice(value.type_name().as_bytes());
                self.out.extend_from_slice(b")(");
                if address == 0 {
                    self.out.extend_from_slice(b"nil");
                } else {
                    self.print_address(address, true);
                }
                self.out.push(b')');
            }
            Some('v') if address == 0 => self.flags.pad(self.out, b"<nil>"),
            Some('v' | 'p') => self.print_address(address, !self.flags.sharp),
            Some('b' | 'o' | 'd' | 'x' | 'X') => {
                let kind = crate::value::IntKind::Uintptr;
                self.print_integer(Int { kind, bits: address as i64 }, c, value);
            }
            _ => self.bad_verb(c, Some(value)),
        }
    }
}

fn pointee_name(object: &dyn Object) -> &str {
    let name = object.type_name();
    name.strip_prefix('*').unwrap_or(name)
}
