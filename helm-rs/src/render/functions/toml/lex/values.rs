//! States of values: where one starts, arrays, inline tables, booleans; and comments.

use gotemplate::strconv::quote;

use super::cursor::{END, is_blank, is_line_end};
use super::{Kind, Lexer, State, got};

impl Lexer<'_> {
    pub(super) fn value(&mut self) -> State {
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

    pub(super) fn array_value(&mut self) -> State {
        match self.next() {
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
        }
    }

    pub(super) fn array_value_end(&mut self) -> State {
        match self.next() {
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
        }
    }

    fn array_end(&mut self) -> State {
        self.ignore();
        self.emit(Kind::ArrayEnd);
        self.pop()
    }

    pub(super) fn inline_table_value(&mut self) -> State {
        match self.next() {
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
        }
    }

    pub(super) fn inline_table_value_end(&mut self) -> State {
        match self.next() {
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
        }
    }

    fn inline_table_end(&mut self) -> State {
        self.ignore();
        self.emit(Kind::InlineTableEnd);
        self.pop()
    }

    pub(super) fn boolean(&mut self) -> State {
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

    pub(super) fn comment_start(&mut self) -> State {
        self.ignore();
        self.emit(Kind::CommentStart);
        State::Comment
    }

    pub(super) fn comment(&mut self) -> State {
        match self.next() {
            c if is_line_end(c) || c == END => self.finish(Kind::Text),
            _ => State::Comment,
        }
    }
}

/// Go's `unicode.IsLetter`.
fn is_letter(c: char) -> bool {
    !c.is_numeric() && gotemplate::strconv::is_letter_or_digit(u32::from(c))
}

fn character_or_end(c: char) -> String {
    if c == END { "end of file".to_owned() } else { format!("'{c}'") }
}
