//! States of strings in their four forms, and of escapes.

use gotemplate::strconv::quote;

use super::cursor::{END, is_line_end};
use super::{Kind, Lexer, State};

impl Lexer<'_> {
    pub(super) fn string(&mut self) -> State {
        match self.next() {
            END => self.complain("unexpected EOF; expected '\"'"),
            c if is_line_end(c) => self.error_on_previous_line("strings cannot contain newlines"),
            '\\' => {
                self.stack.push(State::String);
                State::StringEscape
            }
            '"' => {
                self.backup();
                let escaped = std::mem::take(&mut self.escaped);
                self.emit(if escaped { Kind::EscapedString } else { Kind::String });
                self.next();
                self.ignore();
                self.pop()
            }
            _ => State::String,
        }
    }

    pub(super) fn multiline_string(&mut self) -> State {
        match self.next() {
            END => self.complain("unexpected EOF; expected '\"\"\"'"),
            '\\' => State::MultilineStringEscape,
            '"' => self.multiline_quote('"'),
            _ => State::MultilineString,
        }
    }

    pub(super) fn raw_string(&mut self) -> State {
        match self.next() {
            END => self.complain("unexpected EOF; expected \"'\""),
            c if is_line_end(c) => self.error_on_previous_line("strings cannot contain newlines"),
            '\'' => {
                self.backup();
                self.emit(Kind::RawString);
                self.next();
                self.ignore();
                self.pop()
            }
            _ => State::RawString,
        }
    }

    pub(super) fn multiline_raw_string(&mut self) -> State {
        match self.next() {
            END => self.complain("unexpected EOF; expected \"'''\""),
            '\'' => self.multiline_quote('\''),
            _ => State::MultilineRawString,
        }
    }

    /// A quote inside a multiline string: perhaps the first of the closing three.
    fn multiline_quote(&mut self, quote: char) -> State {
        let raw = quote == '\'';
        let state = if raw { State::MultilineRawString } else { State::MultilineString };
        if !self.accept(quote) {
            return state;
        }
        if !self.accept(quote) {
            self.backup();
            return state;
        }
        if self.peek() == quote {
            let five = [quote as u8; 5];
            let escaped = !raw && self.current().ends_with(b"\\\"\"\"\"\"");
            if self.current().ends_with(&five) && !escaped {
                return self.complain(if raw {
                    "unexpected \"''''''\""
                } else {
                    "unexpected '\"\"\"\"\"\"'"
                });
            }
            self.backup();
            self.backup();
            return state;
        }
        for _ in 0..3 {
            self.backup();
        }
        if raw {
            self.emit(Kind::RawMultilineString);
        } else {
            self.escaped = false;
            self.emit(Kind::MultilineString);
        }
        for _ in 0..3 {
            self.next();
        }
        self.ignore();
        self.pop()
    }

    pub(super) fn multiline_string_escape(&mut self) -> State {
        if is_line_end(self.next()) {
            return State::MultilineString;
        }
        self.backup();
        self.stack.push(State::MultilineString);
        self.string_escape()
    }

    pub(super) fn string_escape(&mut self) -> State {
        self.escaped = true;
        match self.next() {
            'e' | 'b' | 't' | 'n' | 'f' | 'r' | '"' | ' ' | '\t' | '\\' => self.pop(),
            'x' => State::HexEscape(2),
            'u' => State::HexEscape(4),
            'U' => State::HexEscape(8),
            c => self.error(format!("invalid escape in string '\\{c}'")),
        }
    }

    pub(super) fn hex_escape(&mut self, count: usize) -> State {
        for _ in 0..count {
            if !self.next().is_ascii_hexdigit() {
                let (word, letter) = match count {
                    2 => ("two", 'x'),
                    4 => ("four", 'u'),
                    _ => ("eight", 'U'),
                };
                let mut message =
                    format!("expected {word} hexadecimal digits after '\\{letter}', but got ")
                        .into_bytes();
                message.extend_from_slice(&quote(self.current()));
                message.extend_from_slice(b" instead");
                return self.complain(message);
            }
        }
        self.pop()
    }
}
