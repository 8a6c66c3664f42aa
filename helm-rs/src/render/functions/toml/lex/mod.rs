//! Tokens (`lex.go`): a state machine whose states follow the package's one by one, since
//! which error a bad document gives depends on them.

mod cursor;
mod numbers;
mod strings;
mod tables;
mod values;

use std::collections::VecDeque;

use gotemplate::strconv::quote_rune;

use numbers::Base;

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

    fn step(&mut self, state: State) -> State {
        match state {
            State::Top => self.top(),
            State::TopEnd => self.top_end(),
            State::TableStart => self.table_start(),
            State::TableEnd => self.table_end(),
            State::ArrayTableEnd => self.array_table_end(),
            State::TableNameStart => self.table_name_start(),
            State::TableNameEnd => self.table_name_end(),
            State::BareName => self.bare_name(),
            State::QuotedName => self.quoted_name(),
            State::KeyStart => self.key_start(),
            State::KeyNameStart => self.key_name_start(),
            State::KeyEnd => self.key_end(),
            State::Value => self.value(),
            State::ArrayValue => self.array_value(),
            State::ArrayValueEnd => self.array_value_end(),
            State::InlineTableValue => self.inline_table_value(),
            State::InlineTableValueEnd => self.inline_table_value_end(),
            State::String => self.string(),
            State::MultilineString => self.multiline_string(),
            State::RawString => self.raw_string(),
            State::MultilineRawString => self.multiline_raw_string(),
            State::MultilineStringEscape => self.multiline_string_escape(),
            State::StringEscape => self.string_escape(),
            State::HexEscape(count) => self.hex_escape(count),
            State::NumberOrDateStart => self.number_or_date_start(),
            State::NumberOrDate => self.number_or_date(),
            State::Datetime => self.datetime(),
            State::Digits(base) => self.digits(base),
            State::DecimalStart => self.decimal_start(),
            State::BaseNumberOrDate => self.base_number_or_date(),
            State::Float => self.float(),
            State::Bool => self.boolean(),
            State::CommentStart => self.comment_start(),
            State::Comment => self.comment(),
            State::Stop => State::Stop,
        }
    }
}

/// `%q` of a character between two texts.
fn got(before: &str, c: char, after: &str) -> Vec<u8> {
    let mut message = before.as_bytes().to_vec();
    message.extend_from_slice(&quote_rune(u32::from(c)));
    message.extend_from_slice(after.as_bytes());
    message
}
