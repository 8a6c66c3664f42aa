//! From text to tokens (Go `text/template/parse/lex.go`).
//!
//! Tokens are spans of the text. The lexer runs on demand: which words are keywords
//! depends on the functions of the set, and an error ends it.

use bstr::ByteSlice;

use crate::fmt;
use crate::program::count_newlines;
use crate::strconv::{decode_rune, is_letter_or_digit};
use crate::value::{IntKind, Value};

/// What a token is; the keywords come last, as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The text is in [`Lexer::error`].
    Error,
    Bool,
    /// A printable ASCII character with no other meaning, as a comma.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    const fn is_keyword(self) -> bool {
        self as u8 >= Self::Block as u8
    }
}

/// A token: a span of the text and the line it starts on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) line: u32,
}

impl Token {
    /// Stands where no token was read yet.
    pub(super) const NONE: Self = Self { kind: Kind::Error, start: 0, end: 0, line: 0 };
}

const LEFT: &[u8] = b"{{";
const RIGHT: &[u8] = b"}}";
const LEFT_COMMENT: &[u8] = b"/*";
const RIGHT_COMMENT: &[u8] = b"*/";
/// A trim marker and the space beside it.
const MARKER: usize = 2;

/// The state of the scanner.
pub(super) struct Lexer<'t> {
    text: &'t [u8],
    /// Where the next character is.
    at: usize,
    /// Where the current token starts.
    start: usize,
    line: u32,
    start_line: u32,
    parens: u32,
    inside_action: bool,
    /// An error was reported: there is no more input.
    ended: bool,
    break_is_keyword: bool,
    continue_is_keyword: bool,
    /// The text of the error token.
    pub(super) error: Vec<u8>,
}

impl<'t> Lexer<'t> {
    pub(super) const fn new(
        text: &'t [u8],
        break_is_keyword: bool,
        continue_is_keyword: bool,
    ) -> Self {
        Self {
            text,
            at: 0,
            start: 0,
            line: 1,
            start_line: 1,
            parens: 0,
            inside_action: false,
            ended: false,
            break_is_keyword,
            continue_is_keyword,
            error: Vec::new(),
        }
    }

    /// The text of a token.
    pub(super) fn text_of(&self, token: Token) -> &'t [u8] {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// The token as errors show it (`item.String`).
    pub(super) fn describe(&self, token: Token) -> Vec<u8> {
        let text = self.text_of(token);
        match token.kind {
            Kind::Eof => b"EOF".to_vec(),
            Kind::Error => self.error.clone(),
            kind if kind.is_keyword() => [b"<", text, b">"].concat(),
            _ if text.len() > 10 => fmt::sprintf(b"%.10q...", &[Value::string(text)]),
            _ => fmt::sprintf(b"%q", &[Value::string(text)]),
        }
    }

    fn rest(&self) -> &'t [u8] {
        if self.ended { &[] } else { self.text.get(self.at..).unwrap_or_default() }
    }

    fn byte(&self) -> Option<u8> {
        if self.ended { None } else { self.text.get(self.at).copied() }
    }

    fn peek(&self) -> Option<u32> {
        match self.byte() {
            Some(byte) if byte < 0x80 => Some(u32::from(byte)),
            None => None,
            Some(_) => Some(decode_rune(self.rest()).0),
        }
    }

    fn bump(&mut self) -> Option<u32> {
        let (c, size) = decode_rune(self.rest());
        self.at += size;
        if size == 0 {
            return None;
        }
        if c == u32::from(b'\n') {
            self.line += 1;
        }
        Some(c)
    }

    /// The text from the start of the token to here becomes a token.
    fn token(&mut self, kind: Kind) -> Token {
        let token =
            Token { kind, start: self.start as u32, end: self.at as u32, line: self.start_line };
        self.start = self.at;
        self.start_line = self.line;
        token
    }

    /// Counts the lines that were passed without [`Lexer::bump`].
    fn count_lines(&mut self) {
        let passed = self.text.get(self.start..self.at).unwrap_or_default();
        self.line += count_newlines(passed);
    }

    fn ignore(&mut self) {
        self.count_lines();
        self.start = self.at;
        self.start_line = self.line;
    }

    fn fail(&mut self, message: impl Into<Vec<u8>>) -> Token {
        self.error = message.into();
        let token = Token {
            kind: Kind::Error,
            start: self.start as u32,
            end: self.start as u32,
            line: self.start_line,
        };
        self.ended = true;
        self.at = 0;
        self.start = 0;
        token
    }

    /// `nextItem`.
    pub(super) fn next(&mut self) -> Token {
        if self.inside_action { self.inside_action() } else { self.text() }
    }

    /// `lexText`.
    fn text(&mut self) -> Token {
        loop {
            let rest = self.rest();
            let Some(length) = find_left(rest) else {
                self.at += rest.len();
                if self.at > self.start && !self.ended {
                    self.count_lines();
                    return self.token(Kind::Text);
                }
                return self.token(Kind::Eof);
            };
            if length > 0 {
                let text = rest.get(..length).unwrap_or_default();
                let after = rest.get(length + LEFT.len()..).unwrap_or_default();
                let kept = if trims_left(after) {
                    text.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1)
                } else {
                    length
                };
                self.at += kept;
                self.count_lines();
                let token = self.token(Kind::Text);
                self.at += length - kept;
                self.ignore();
                if kept > 0 {
                    return token;
                }
            }
            // Nothing of a comment remains, so that it is skipped here.
            if let Some(token) = self.left_delim() {
                return token;
            }
        }
    }

    /// `lexLeftDelim`: the delimiter, or nothing when it opened a comment.
    fn left_delim(&mut self) -> Option<Token> {
        self.at += LEFT.len();
        let marker = if trims_left(self.rest()) { MARKER } else { 0 };
        if self.rest().get(marker..).unwrap_or_default().starts_with(LEFT_COMMENT) {
            self.at += marker;
            self.ignore();
            return self.comment();
        }
        let token = self.token(Kind::LeftDelim);
        self.inside_action = true;
        self.at += marker;
        self.ignore();
        self.parens = 0;
        Some(token)
    }

    /// `lexComment`: an error token, or nothing.
    fn comment(&mut self) -> Option<Token> {
        self.at += LEFT_COMMENT.len();
        let Some(length) = self.rest().find(RIGHT_COMMENT) else {
            return Some(self.fail("unclosed comment"));
        };
        self.at += length + RIGHT_COMMENT.len();
        let Some(trim) = self.right_delim_here() else {
            return Some(self.fail("comment ends before closing delimiter"));
        };
        self.count_lines();
        self.start = self.at;
        self.start_line = self.line;
        self.at += if trim { MARKER } else { 0 } + RIGHT.len();
        if trim {
            self.skip_spaces();
        }
        self.ignore();
        None
    }

    /// `atRightDelim`: whether the right delimiter is here, and trims.
    fn right_delim_here(&self) -> Option<bool> {
        let rest = self.rest();
        if trims_right(rest) && rest.get(MARKER..).unwrap_or_default().starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.iter().take_while(|&&byte| is_space(byte)).count();
    }

    /// `lexRightDelim`.
    fn right_delim(&mut self, trim: bool) -> Token {
        if trim {
            self.at += MARKER;
            self.ignore();
        }
        self.at += RIGHT.len();
        let token = self.token(Kind::RightDelim);
        if trim {
            self.skip_spaces();
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    /// `lexInsideAction`.
    fn inside_action(&mut self) -> Token {
        if let Some(trim) = self.right_delim_here() {
            if self.parens == 0 {
                return self.right_delim(trim);
            }
            return self.fail("unclosed left paren");
        }
        let Some(c) = self.peek() else { return self.fail("unclosed action") };
        match u8::try_from(c).unwrap_or(0xff) {
            b' ' | b'\t' | b'\r' | b'\n' => self.space(),
            b'=' => self.single(Kind::Assign),
            b':' => {
                self.bump();
                if self.bump() == Some(u32::from(b'=')) {
                    self.token(Kind::Declare)
                } else {
                    self.fail("expected :=")
                }
            }
            b'|' => self.single(Kind::Pipe),
            b'"' => self.quoted(b'"', Kind::String, "unterminated quoted string"),
            b'\'' => self.quoted(b'\'', Kind::CharConstant, "unterminated character constant"),
            b'`' => self.raw_quoted(),
            b'$' => {
                self.bump();
                self.field_or_variable(Kind::Variable)
            }
            b'.' => match self.rest().get(1) {
                Some(next) if !next.is_ascii_digit() => {
                    self.bump();
                    self.field_or_variable(Kind::Field)
                }
                _ => self.number(),
            },
            b'+' | b'-' | b'0'..=b'9' => self.number(),
            b'(' => {
                self.parens += 1;
                self.single(Kind::LeftParen)
            }
            b')' => {
                self.bump();
                match self.parens.checked_sub(1) {
                    Some(parens) => {
                        self.parens = parens;
                        self.token(Kind::RightParen)
                    }
                    None => self.fail("unexpected right paren"),
                }
            }
            _ if is_alphanumeric(c) => self.identifier(),
            0x20..=0x7e => self.single(Kind::Char),
            _ => {
                self.bump();
                self.fail(describe_char("unrecognized character in action: %#U", Some(c)))
            }
        }
    }

    fn single(&mut self, kind: Kind) -> Token {
        self.at += 1;
        self.token(kind)
    }

    /// `lexSpace`.
    fn space(&mut self) -> Token {
        let mut count = 0;
        let mut before_last = (self.at, self.line);
        while self.byte().is_some_and(is_space) {
            before_last = (self.at, self.line);
            self.line += u32::from(self.byte() == Some(b'\n'));
            self.at += 1;
            count += 1;
        }
        // The last space may belong to a trimming delimiter.
        let last = self.text.get(before_last.0..).unwrap_or_default();
        if trims_right(last) && last.get(MARKER..).unwrap_or_default().starts_with(RIGHT) {
            (self.at, self.line) = before_last;
            if count == 1 {
                return self.right_delim(true);
            }
        }
        self.token(Kind::Space)
    }

    /// `lexIdentifier`.
    fn identifier(&mut self) -> Token {
        self.skip_word();
        if !self.at_terminator() {
            return self.fail(describe_char("bad character %#U", self.peek()));
        }
        let word = self.text.get(self.start..self.at).unwrap_or_default();
        let kind = match word {
            b"block" => Kind::Block,
            b"break" if self.break_is_keyword => Kind::Break,
            b"continue" if self.continue_is_keyword => Kind::Continue,
            b"define" => Kind::Define,
            b"else" => Kind::Else,
            b"end" => Kind::End,
            b"if" => Kind::If,
            b"range" => Kind::Range,
            b"nil" => Kind::Nil,
            b"template" => Kind::Template,
            b"with" => Kind::With,
            b"true" | b"false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.token(kind)
    }

    fn skip_word(&mut self) {
        loop {
            match self.byte() {
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => self.at += 1,
                Some(byte) if byte >= 0x80 => {
                    let (c, size) = decode_rune(self.rest());
                    if !is_alphanumeric(c) {
                        return;
                    }
                    self.at += size;
                }
                _ => return,
            }
        }
    }

    /// `lexFieldOrVariable`, after its first character.
    fn field_or_variable(&mut self, kind: Kind) -> Token {
        if self.at_terminator() {
            return self.token(if kind == Kind::Field { Kind::Dot } else { kind });
        }
        self.skip_word();
        if !self.at_terminator() {
            return self.fail(describe_char("bad character %#U", self.peek()));
        }
        self.token(kind)
    }

    /// `atTerminator`: whether an identifier may end here.
    fn at_terminator(&self) -> bool {
        match self.byte() {
            None => true,
            Some(byte) => {
                is_space(byte)
                    || matches!(byte, b'.' | b',' | b'|' | b':' | b')' | b'(')
                    || self.rest().starts_with(RIGHT)
            }
        }
    }

    /// `lexQuote` and `lexChar`.
    fn quoted(&mut self, quote: u8, kind: Kind, unterminated: &str) -> Token {
        self.bump();
        loop {
            // What has no meaning here is passed at once.
            let is_plain = |&byte: &u8| byte.is_ascii_graphic() || byte == b' ';
            let is_text = |byte: &u8| is_plain(byte) && *byte != quote && *byte != b'\\';
            self.at += self.rest().iter().take_while(|byte| is_text(byte)).count();
            match self.bump().and_then(|c| u8::try_from(c).ok()) {
                Some(b'\\') => match self.bump() {
                    None | Some(0x0a) => return self.fail(unterminated),
                    Some(_) => {}
                },
                Some(b'\n') => return self.fail(unterminated),
                Some(c) if c == quote => return self.token(kind),
                _ if self.byte().is_none() => return self.fail(unterminated),
                _ => {}
            }
        }
    }

    /// `lexRawQuote`.
    fn raw_quoted(&mut self) -> Token {
        self.bump();
        loop {
            match self.bump() {
                None => return self.fail("unterminated raw quoted string"),
                Some(0x60) => return self.token(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    /// `lexNumber`.
    fn number(&mut self) -> Token {
        let complete = self.scan_number();
        if complete && !matches!(self.byte(), Some(b'+' | b'-')) {
            return self.token(Kind::Number);
        }
        if complete && self.scan_number() && self.text.get(self.at - 1) == Some(&b'i') {
            return self.token(Kind::Complex);
        }
        let text = self.text.get(self.start..self.at).unwrap_or_default();
        let message = fmt::sprintf(b"bad number syntax: %q", &[Value::string(text)]);
        self.fail(message)
    }

    fn accept(&mut self, valid: &[u8]) -> bool {
        let accepted = self.byte().is_some_and(|byte| valid.contains(&byte));
        self.at += usize::from(accepted);
        accepted
    }

    fn accept_run(&mut self, valid: &[u8]) {
        while self.accept(valid) {}
    }

    /// `scanNumber`.
    fn scan_number(&mut self) -> bool {
        const DECIMAL: &[u8] = b"0123456789_";
        const HEX: &[u8] = b"0123456789abcdefABCDEF_";
        self.accept(b"+-");
        let mut digits = DECIMAL;
        if self.accept(b"0") {
            if self.accept(b"xX") {
                digits = HEX;
            } else if self.accept(b"oO") {
                digits = b"01234567_";
            } else if self.accept(b"bB") {
                digits = b"01_";
            }
        }
        self.accept_run(digits);
        if self.accept(b".") {
            self.accept_run(digits);
        }
        if digits.len() == DECIMAL.len() && self.accept(b"eE")
            || digits.len() == HEX.len() && self.accept(b"pP")
        {
            self.accept(b"+-");
            self.accept_run(DECIMAL);
        }
        self.accept(b"i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.bump();
            return false;
        }
        true
    }
}

fn describe_char(format: &str, c: Option<u32>) -> Vec<u8> {
    // The end of the input is -1 in Go.
    let c = c.map_or(-1, i64::from);
    fmt::sprintf(format.as_bytes(), &[Value::sized(IntKind::Int32, c)])
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Where the left delimiter is. A searcher for both bytes costs more to set up than it saves
/// between delimiters that stand close together.
fn find_left(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let brace = from + text.get(from..)?.find_byte(b'{')?;
        if text.get(brace + 1) == Some(&b'{') {
            return Some(brace);
        }
        from = brace + 1;
    }
}

fn is_alphanumeric(c: u32) -> bool {
    c == u32::from(b'_') || is_letter_or_digit(c)
}

/// `hasLeftTrimMarker`.
const fn trims_left(text: &[u8]) -> bool {
    matches!(text, [b'-', space, ..] if is_space(*space))
}

/// `hasRightTrimMarker`.
const fn trims_right(text: &[u8]) -> bool {
    matches!(text, [space, b'-', ..] if is_space(*space))
}
