//! States of numbers and dates, which begin alike.

use super::{Kind, Lexer, State, Token, got};

/// What digits a number is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Hexadecimal,
    Octal,
    Binary,
    Decimal,
}

impl Base {
    const fn has(self, c: char) -> bool {
        match self {
            Self::Hexadecimal => c.is_ascii_hexdigit(),
            Self::Octal => matches!(c, '0'..='7'),
            Self::Binary => matches!(c, '0' | '1'),
            Self::Decimal => c.is_ascii_digit(),
        }
    }
}

impl Lexer<'_> {
    pub(super) fn number_or_date_start(&mut self) -> State {
        if self.next() == '0' { State::BaseNumberOrDate } else { State::NumberOrDate }
    }

    pub(super) fn number_or_date(&mut self) -> State {
        match self.next() {
            '0'..='9' => State::NumberOrDate,
            '-' | ':' => State::Datetime,
            '_' => State::Digits(Base::Decimal),
            '.' | 'e' | 'E' => State::Float,
            _ => self.finish(Kind::Integer),
        }
    }

    pub(super) fn datetime(&mut self) -> State {
        match self.next() {
            '0'..='9' | '-' | ':' | 'T' | 't' | ' ' | '.' | 'Z' | 'z' | '+' => State::Datetime,
            _ => {
                self.backup();
                let text = self.current().trim_ascii().to_vec();
                let token = Token { kind: Kind::Datetime, text, line: self.line };
                self.tokens.push_back(token);
                self.start = self.position;
                self.pop()
            }
        }
    }

    pub(super) fn digits(&mut self, base: Base) -> State {
        match (self.next(), base) {
            ('_', _) => State::Digits(base),
            ('.' | 'e' | 'E', Base::Decimal) => State::Float,
            (c, base) if base.has(c) => State::Digits(base),
            _ => self.finish(Kind::Integer),
        }
    }

    pub(super) fn decimal_start(&mut self) -> State {
        let c = self.next();
        let special = match c {
            'i' => Some(self.accept('n') && self.accept('f')),
            'n' => Some(self.accept('a') && self.accept('n')),
            _ => None,
        };
        match special {
            Some(true) => {
                self.emit(Kind::Float);
                return self.pop();
            }
            Some(false) => {
                let message = [b"invalid float: '", self.current(), b"'"].concat();
                return self.complain(message);
            }
            None => {}
        }
        if c == '0' {
            let next = self.peek();
            if matches!(next, 'b' | 'o' | 'x') {
                let mut message = b"cannot use sign with non-decimal numbers: '".to_vec();
                message.extend_from_slice(self.current());
                message.extend_from_slice(format!("{next}'").as_bytes());
                return self.complain(message);
            }
        }
        match c {
            '.' => self.complain("floats must start with a digit, not '.'"),
            '0'..='9' => State::Digits(Base::Decimal),
            _ => self.complain(got("expected a digit but got ", c, "")),
        }
    }

    pub(super) fn base_number_or_date(&mut self) -> State {
        let (base, what) = match self.next() {
            '0'..='9' => return State::NumberOrDate,
            '_' => return State::Digits(Base::Decimal),
            '.' | 'e' | 'E' => return State::Float,
            'b' => (Base::Binary, "a binary"),
            'o' => (Base::Octal, "an octal"),
            'x' => (Base::Hexadecimal, "a hexadecimal"),
            _ => return self.finish(Kind::Integer),
        };
        let next = self.peek();
        if !base.has(next) {
            let mut message = format!("not {what} number: '").into_bytes();
            message.extend_from_slice(self.current());
            message.extend_from_slice(format!("{next}'").as_bytes());
            self.complain(message);
        }
        State::Digits(base)
    }

    pub(super) fn float(&mut self) -> State {
        match self.next() {
            '0'..='9' | '_' | '.' | '-' | '+' | 'e' | 'E' => State::Float,
            _ => self.finish(Kind::Float),
        }
    }
}
