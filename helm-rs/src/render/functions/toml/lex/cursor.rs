//! Moving over the characters of the input, and emitting what lies between two places.

use super::{Kind, Lexer, State, Token};

/// The end of the input, as a character; a real NUL is an error before it is seen.
pub(super) const END: char = '\0';
const BAD: char = char::REPLACEMENT_CHARACTER;

pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, '\t' | ' ')
}

pub(super) const fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

impl<'a> Lexer<'a> {
    pub(super) fn pop(&mut self) -> State {
        self.stack.pop().unwrap_or(State::Stop)
    }

    pub(super) fn current(&self) -> &'a [u8] {
        self.input.get(self.start..self.position).unwrap_or_default()
    }

    pub(super) fn emit(&mut self, kind: Kind) {
        if self.start > self.position {
            let byte = self.input.get(self.position).copied().unwrap_or_default();
            self.error(format!("invalid UTF-8 byte: 0x{byte:02x}"));
            return;
        }
        self.tokens.push_back(Token { kind, text: self.current().to_vec(), line: self.line });
        self.start = self.position;
    }

    /// Takes one character; the end gives [`END`], a bad one an error and [`BAD`].
    pub(super) fn next(&mut self) -> char {
        let Some(&byte) = self.input.get(self.position) else {
            self.at_end = true;
            return END;
        };
        if byte == b'\n' {
            self.line += 1;
        }
        let [a, b, c, _] = self.widths;
        self.widths = [a, a, b, c];
        let rest = self.input.get(self.position..).unwrap_or_default();
        let head = rest.get(..rest.len().min(4)).unwrap_or_default();
        let valid = head.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let Some(c) = valid.chars().next() else {
            self.error(format!("invalid UTF-8 byte: 0x{byte:02x}"));
            return BAD;
        };
        let control = (c.is_ascii_control() && !matches!(c, '\t' | '\r' | '\n'))
            || (c == '\r' && rest.get(1) != Some(&b'\n'));
        if control {
            let message =
                format!("TOML files cannot contain control characters: '0x{:02x}'", u32::from(c));
            self.push_error(message, self.line);
            return BAD;
        }
        if let Some(width) = self.widths.first_mut() {
            *width = c.len_utf8();
        }
        self.position += c.len_utf8();
        c
    }

    pub(super) fn ignore(&mut self) {
        self.start = self.position;
    }

    pub(super) fn backup(&mut self) {
        if self.at_end {
            self.at_end = false;
            return;
        }
        let [width, a, b, c] = self.widths;
        self.widths = [a, b, c, c];
        self.position = self.position.saturating_sub(width);
        if self.input.get(self.position) == Some(&b'\n') {
            self.line -= 1;
        }
    }

    pub(super) fn accept(&mut self, wanted: char) -> bool {
        if self.next() == wanted {
            return true;
        }
        self.backup();
        false
    }

    pub(super) fn peek(&mut self) -> char {
        let c = self.next();
        self.backup();
        c
    }

    pub(super) fn skip_blanks(&mut self) {
        while is_blank(self.next()) {}
        self.backup();
        self.ignore();
    }

    pub(super) fn push_error(&mut self, message: impl Into<Vec<u8>>, line: i64) -> State {
        self.tokens.push_back(Token { kind: Kind::Error, text: message.into(), line });
        State::Stop
    }

    /// An error at the current place; at the end of the input, on the line before.
    pub(super) fn error(&mut self, message: impl Into<Vec<u8>>) -> State {
        let line = if self.at_end { self.line - 1 } else { self.line };
        self.push_error(message, line)
    }

    pub(super) fn error_on_previous_line(&mut self, message: impl Into<Vec<u8>>) -> State {
        self.push_error(message, self.line - 1)
    }

    /// The package's `errorf`: at the end of the input the error is on the last line.
    pub(super) fn complain(&mut self, message: impl Into<Vec<u8>>) -> State {
        let after_line =
            self.at_end && self.position >= 1 && self.input.get(self.position - 1) == Some(&b'\n');
        let line = if after_line { self.line - 1 } else { self.line };
        self.push_error(message, line)
    }

    pub(super) fn skip_to(&mut self, state: State) -> State {
        self.ignore();
        state
    }

    /// Steps back over the character that ended a token, and emits the token.
    pub(super) fn finish(&mut self, kind: Kind) -> State {
        self.backup();
        self.emit(kind);
        self.pop()
    }
}
