//! Tokens (`lex.go`): a state machine whose states follow the package's one by one, since
//! which error a bad document gives depends on them.

use std::collections::VecDeque;

use gotemplate::strconv::{quote, quote_rune};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Error,
    End,
    Text,
    String,
    EscapedString,
    RawString,
    MultilineString,
    RawMultilineString,
    Bool,
    Integer,
    Float,
    Datetime,
    Array,
    ArrayEnd,
    TableStart,
    TableEnd,
    ArrayTableStart,
    ArrayTableEnd,
    KeyStart,
    KeyEnd,
    CommentStart,
    InlineTableStart,
    InlineTableEnd,
}

/// One token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The text; of an error, the message.
    pub(super) text: Vec<u8>,
    pub(super) line: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Top,
    TopEnd,
    TableStart,
    TableEnd,
    ArrayTableEnd,
    TableNameStart,
    TableNameEnd,
    BareName,
    QuotedName,
    KeyStart,
    KeyNameStart,
    KeyEnd,
    Value,
    ArrayValue,
    ArrayValueEnd,
    InlineTableValue,
    InlineTableValueEnd,
    String,
    MultilineString,
    RawString,
    MultilineRawString,
    MultilineStringEscape,
    StringEscape,
    HexEscape(usize),
    NumberOrDateStart,
    NumberOrDate,
    Datetime,
    Digits(Base),
    DecimalStart,
    BaseNumberOrDate,
    Float,
    Bool,
    CommentStart,
    Comment,
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Hexadecimal,
    Octal,
    Binary,
    Decimal,
}

/// The end of the input, as a character; a real NUL is an error before it is seen.
const END: char = '\0';
const BAD: char = char::REPLACEMENT_CHARACTER;

pub(super) struct Lexer<'a> {
    input: &'a [u8],
    start: usize,
    position: usize,
    line: i64,
    state: State,
    tokens: VecDeque<Token>,
    escaped: bool,
    /// The widths of the last characters, the latest first, for stepping back.
    widths: [usize; 4],
    at_end: bool,
    stack: Vec<State>,
}

const fn is_blank(c: char) -> bool {
    matches!(c, '\t' | ' ')
}

const fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

const fn is_bare(c: char) -> bool {
    super::keys::is_bare(c)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            start: 0,
            position: 0,
            line: 1,
            state: State::Top,
            tokens: VecDeque::new(),
            escaped: false,
            widths: [0; 4],
            at_end: false,
            stack: Vec::new(),
        }
    }

    /// The next token.
    pub(super) fn next_token(&mut self) -> Token {
        loop {
            if let Some(token) = self.tokens.pop_front() {
                return token;
            }
            if self.state == State::Stop {
                return Token { kind: Kind::End, text: Vec::new(), line: self.line };
            }
            self.state = self.step(self.state);
        }
    }

    fn pop(&mut self) -> State {
        self.stack.pop().unwrap_or(State::Stop)
    }

    fn current(&self) -> &'a [u8] {
        self.input.get(self.start..self.position).unwrap_or_default()
    }

    fn emit(&mut self, kind: Kind) {
        if self.start > self.position {
            let byte = self.input.get(self.position).copied().unwrap_or_default();
            self.error(format!("invalid UTF-8 byte: 0x{byte:02x}"));
            return;
        }
        self.tokens.push_back(Token { kind, text: self.current().to_vec(), line: self.line });
        self.start = self.position;
    }

    /// Takes one character; the end gives [`END`], a bad one an error and [`BAD`].
    fn next(&mut self) -> char {
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

    fn ignore(&mut self) {
        self.start = self.position;
    }

    fn backup(&mut self) {
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

    fn accept(&mut self, wanted: char) -> bool {
        if self.next() == wanted {
            return true;
        }
        self.backup();
        false
    }

    fn peek(&mut self) -> char {
        let c = self.next();
        self.backup();
        c
    }

    fn skip_blanks(&mut self) {
        while is_blank(self.next()) {}
        self.backup();
        self.ignore();
    }

    fn push_error(&mut self, message: impl Into<Vec<u8>>, line: i64) -> State {
        self.tokens.push_back(Token { kind: Kind::Error, text: message.into(), line });
        State::Stop
    }

    /// An error at the current place; at the end of the input, on the line before.
    fn error(&mut self, message: impl Into<Vec<u8>>) -> State {
        let line = if self.at_end { self.line - 1 } else { self.line };
        self.push_error(message, line)
    }

    fn error_on_previous_line(&mut self, message: impl Into<Vec<u8>>) -> State {
        self.push_error(message, self.line - 1)
    }

    /// The package's `errorf`: at the end of the input the error is on the last line.
    fn complain(&mut self, message: impl Into<Vec<u8>>) -> State {
        let after_line =
            self.at_end && self.position >= 1 && self.input.get(self.position - 1) == Some(&b'\n');
        let line = if after_line { self.line - 1 } else { self.line };
        self.push_error(message, line)
    }

    fn skip_to(&mut self, state: State) -> State {
        self.ignore();
        state
    }

    #[expect(clippy::too_many_lines, reason = "one row for each state")]
    fn step(&mut self, state: State) -> State {
        match state {
            State::Top => self.top(),
            State::TopEnd => match self.next() {
                '#' => {
                    self.stack.push(State::Top);
                    State::CommentStart
                }
                c if is_blank(c) => State::TopEnd,
                c if is_line_end(c) => self.skip_to(State::Top),
                END => {
                    self.emit(Kind::End);
                    State::Stop
                }
                c => {
                    let message = "expected a top-level item to end with a newline, comment, or \
                                   EOF, but got ";
                    self.complain(got(message, c, " instead"))
                }
            },
            State::TableStart => {
                if self.peek() == '[' {
                    self.next();
                    self.emit(Kind::ArrayTableStart);
                    self.stack.push(State::ArrayTableEnd);
                } else {
                    self.emit(Kind::TableStart);
                    self.stack.push(State::TableEnd);
                }
                State::TableNameStart
            }
            State::TableEnd => {
                self.emit(Kind::TableEnd);
                State::TopEnd
            }
            State::ArrayTableEnd => match self.next() {
                ']' => {
                    self.emit(Kind::ArrayTableEnd);
                    State::TopEnd
                }
                c => {
                    let message = "expected end of table array name delimiter ']', but got ";
                    self.complain(got(message, c, " instead"))
                }
            },
            State::TableNameStart => {
                self.skip_blanks();
                match self.peek() {
                    ']' | END => {
                        self.complain("unexpected end of table name (table names cannot be empty)")
                    }
                    '.' => {
                        self.complain("unexpected table separator (table names cannot be empty)")
                    }
                    '"' | '\'' => {
                        self.ignore();
                        self.stack.push(State::TableNameEnd);
                        State::QuotedName
                    }
                    _ => {
                        self.stack.push(State::TableNameEnd);
                        State::BareName
                    }
                }
            }
            State::TableNameEnd => {
                self.skip_blanks();
                match self.next() {
                    '.' => self.skip_to(State::TableNameStart),
                    ']' => self.pop(),
                    c => {
                        let message = "expected '.' or ']' to end table name, but got ";
                        self.complain(got(message, c, " instead"))
                    }
                }
            }
            State::BareName => {
                if is_bare(self.next()) {
                    return State::BareName;
                }
                self.backup();
                self.emit(Kind::Text);
                self.pop()
            }
            State::QuotedName => match self.next() {
                '"' => self.skip_to(State::String),
                '\'' => self.skip_to(State::RawString),
                c => self.complain(got("expected value but found ", c, " instead")),
            },
            State::KeyStart => {
                self.skip_blanks();
                match self.peek() {
                    '=' | END => self.complain("unexpected '=': key name appears blank"),
                    '.' => self.complain("unexpected '.': keys cannot start with a '.'"),
                    c => {
                        if matches!(c, '"' | '\'') {
                            self.ignore();
                        }
                        self.emit(Kind::KeyStart);
                        State::KeyNameStart
                    }
                }
            }
            State::KeyNameStart => {
                self.skip_blanks();
                match self.peek() {
                    '=' | END => self.complain("unexpected '='"),
                    '.' => self.complain("unexpected '.'"),
                    '"' | '\'' => {
                        self.ignore();
                        self.stack.push(State::KeyEnd);
                        State::QuotedName
                    }
                    _ => {
                        self.stack.push(State::KeyEnd);
                        State::BareName
                    }
                }
            }
            State::KeyEnd => {
                self.skip_blanks();
                match self.next() {
                    END => self.complain("unexpected EOF; expected key separator '='"),
                    '.' => self.skip_to(State::KeyNameStart),
                    '=' => {
                        self.emit(Kind::KeyEnd);
                        self.skip_to(State::Value)
                    }
                    c => {
                        let message = got("expected '.' or '=', but got ", c, " instead");
                        if c == '\n' {
                            self.error_on_previous_line(message)
                        } else {
                            self.complain(message)
                        }
                    }
                }
            }
            State::Value => self.value(),
            State::ArrayValue => match self.next() {
                c if is_blank(c) || is_line_end(c) => self.skip_to(State::ArrayValue),
                '#' => {
                    self.stack.push(State::ArrayValue);
                    State::CommentStart
                }
                ',' => self.complain("unexpected comma"),
                ']' => self.array_end(),
                _ => {
                    self.backup();
                    self.stack.push(State::ArrayValueEnd);
                    State::Value
                }
            },
            State::ArrayValueEnd => match self.next() {
                c if is_blank(c) || is_line_end(c) => self.skip_to(State::ArrayValueEnd),
                '#' => {
                    self.stack.push(State::ArrayValueEnd);
                    State::CommentStart
                }
                ',' => self.skip_to(State::ArrayValue),
                ']' => self.array_end(),
                c => {
                    let found = character_or_end(c);
                    self.complain(format!(
                        "expected a comma (',') or array terminator (']'), but got {found}"
                    ))
                }
            },
            State::InlineTableValue => match self.next() {
                c if is_blank(c) || is_line_end(c) => self.skip_to(State::InlineTableValue),
                '#' => {
                    self.stack.push(State::InlineTableValue);
                    State::CommentStart
                }
                ',' => self.complain("unexpected comma"),
                '}' => self.inline_table_end(),
                _ => {
                    self.backup();
                    self.stack.push(State::InlineTableValueEnd);
                    State::KeyStart
                }
            },
            State::InlineTableValueEnd => match self.next() {
                c if is_blank(c) || is_line_end(c) => self.skip_to(State::InlineTableValueEnd),
                '#' => {
                    self.stack.push(State::InlineTableValueEnd);
                    State::CommentStart
                }
                ',' => {
                    self.ignore();
                    self.skip_blanks();
                    if self.peek() == '}' {
                        State::InlineTableValueEnd
                    } else {
                        State::InlineTableValue
                    }
                }
                '}' => self.inline_table_end(),
                c => {
                    let found = character_or_end(c);
                    self.complain(format!(
                        "expected a comma or an inline table terminator '}}', but got {found} \
                         instead"
                    ))
                }
            },
            State::String => match self.next() {
                END => self.complain("unexpected EOF; expected '\"'"),
                c if is_line_end(c) => {
                    self.error_on_previous_line("strings cannot contain newlines")
                }
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
            },
            State::MultilineString => match self.next() {
                END => self.complain("unexpected EOF; expected '\"\"\"'"),
                '\\' => State::MultilineStringEscape,
                '"' => self.multiline_quote('"'),
                _ => State::MultilineString,
            },
            State::RawString => match self.next() {
                END => self.complain("unexpected EOF; expected \"'\""),
                c if is_line_end(c) => {
                    self.error_on_previous_line("strings cannot contain newlines")
                }
                '\'' => {
                    self.backup();
                    self.emit(Kind::RawString);
                    self.next();
                    self.ignore();
                    self.pop()
                }
                _ => State::RawString,
            },
            State::MultilineRawString => match self.next() {
                END => self.complain("unexpected EOF; expected \"'''\""),
                '\'' => self.multiline_quote('\''),
                _ => State::MultilineRawString,
            },
            State::MultilineStringEscape => {
                if is_line_end(self.next()) {
                    return State::MultilineString;
                }
                self.backup();
                self.stack.push(State::MultilineString);
                self.step(State::StringEscape)
            }
            State::StringEscape => {
                self.escaped = true;
                match self.next() {
                    'e' | 'b' | 't' | 'n' | 'f' | 'r' | '"' | ' ' | '\t' | '\\' => self.pop(),
                    'x' => State::HexEscape(2),
                    'u' => State::HexEscape(4),
                    'U' => State::HexEscape(8),
                    c => self.error(format!("invalid escape in string '\\{c}'")),
                }
            }
            State::HexEscape(count) => self.hex_escape(count),
            State::NumberOrDateStart => {
                if self.next() == '0' {
                    State::BaseNumberOrDate
                } else {
                    State::NumberOrDate
                }
            }
            State::NumberOrDate => match self.next() {
                '0'..='9' => State::NumberOrDate,
                '-' | ':' => State::Datetime,
                '_' => State::Digits(Base::Decimal),
                '.' | 'e' | 'E' => State::Float,
                _ => self.finish(Kind::Integer),
            },
            State::Datetime => match self.next() {
                '0'..='9' | '-' | ':' | 'T' | 't' | ' ' | '.' | 'Z' | 'z' | '+' => State::Datetime,
                _ => {
                    self.backup();
                    let text = self.current().trim_ascii().to_vec();
                    let token = Token { kind: Kind::Datetime, text, line: self.line };
                    self.tokens.push_back(token);
                    self.start = self.position;
                    self.pop()
                }
            },
            State::Digits(base) => match (self.next(), base) {
                ('_', _) => State::Digits(base),
                ('.' | 'e' | 'E', Base::Decimal) => State::Float,
                (c, base) if base.has(c) => State::Digits(base),
                _ => self.finish(Kind::Integer),
            },
            State::DecimalStart => self.decimal_start(),
            State::BaseNumberOrDate => self.base_number_or_date(),
            State::Float => match self.next() {
                '0'..='9' | '_' | '.' | '-' | '+' | 'e' | 'E' => State::Float,
                _ => self.finish(Kind::Float),
            },
            State::Bool => self.boolean(),
            State::CommentStart => {
                self.ignore();
                self.emit(Kind::CommentStart);
                State::Comment
            }
            State::Comment => match self.next() {
                c if is_line_end(c) || c == END => self.finish(Kind::Text),
                _ => State::Comment,
            },
            State::Stop => State::Stop,
        }
    }

    /// Steps back over the character that ended a token, and emits the token.
    fn finish(&mut self, kind: Kind) -> State {
        self.backup();
        self.emit(kind);
        self.pop()
    }

    fn top(&mut self) -> State {
        match self.next() {
            c if is_blank(c) || is_line_end(c) => self.skip_to(State::Top),
            '#' => {
                self.stack.push(State::Top);
                State::CommentStart
            }
            '[' => State::TableStart,
            END => {
                if self.position > self.start {
                    return self.complain("unexpected EOF");
                }
                self.emit(Kind::End);
                State::Stop
            }
            _ => {
                self.backup();
                self.stack.push(State::TopEnd);
                State::KeyStart
            }
        }
    }

    fn value(&mut self) -> State {
        let c = self.next();
        match c {
            c if is_blank(c) => return self.skip_to(State::Value),
            '0'..='9' => {
                self.backup();
                return State::NumberOrDateStart;
            }
            '[' => {
                self.ignore();
                self.emit(Kind::Array);
                return State::ArrayValue;
            }
            '{' => {
                self.ignore();
                self.emit(Kind::InlineTableStart);
                return State::InlineTableValue;
            }
            '"' | '\'' => {
                let (one, three) = if c == '"' {
                    (State::String, State::MultilineString)
                } else {
                    (State::RawString, State::MultilineRawString)
                };
                if self.accept(c) {
                    if self.accept(c) {
                        return self.skip_to(three);
                    }
                    self.backup();
                }
                return self.skip_to(one);
            }
            '.' => return self.complain("floats must start with a digit, not '.'"),
            'i' | 'n' => {
                let infinite = self.accept('n') && self.accept('f');
                if infinite || (self.accept('a') && self.accept('n')) {
                    self.emit(Kind::Float);
                    return self.pop();
                }
            }
            '-' | '+' => return State::DecimalStart,
            _ => {}
        }
        if is_letter(c) {
            self.backup();
            return State::Bool;
        }
        match c {
            END => self.complain("unexpected EOF; expected value"),
            '\n' => self.error_on_previous_line(got("expected value but found ", c, " instead")),
            _ => self.complain(got("expected value but found ", c, " instead")),
        }
    }

    fn array_end(&mut self) -> State {
        self.ignore();
        self.emit(Kind::ArrayEnd);
        self.pop()
    }

    fn inline_table_end(&mut self) -> State {
        self.ignore();
        self.emit(Kind::InlineTableEnd);
        self.pop()
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

    fn hex_escape(&mut self, count: usize) -> State {
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

    fn decimal_start(&mut self) -> State {
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

    fn base_number_or_date(&mut self) -> State {
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

    fn boolean(&mut self) -> State {
        let mut word = String::new();
        loop {
            let c = self.next();
            if !is_letter(c) {
                self.backup();
                break;
            }
            word.push(c);
        }
        if matches!(word.as_str(), "true" | "false") {
            self.emit(Kind::Bool);
            return self.pop();
        }
        let mut message = b"expected value but found ".to_vec();
        message.extend_from_slice(&quote(word.as_bytes()));
        message.extend_from_slice(b" instead");
        self.complain(message)
    }
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

/// Go's `unicode.IsLetter`.
fn is_letter(c: char) -> bool {
    !c.is_numeric() && gotemplate::strconv::is_letter_or_digit(u32::from(c))
}

/// `%q` of a character between two texts.
fn got(before: &str, c: char, after: &str) -> Vec<u8> {
    let mut message = before.as_bytes().to_vec();
    message.extend_from_slice(&quote_rune(u32::from(c)));
    message.extend_from_slice(after.as_bytes());
    message
}

fn character_or_end(c: char) -> String {
    if c == END { "end of file".to_owned() } else { format!("'{c}'") }
}
