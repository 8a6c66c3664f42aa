//! States of the lines of a document: tables, keys, and what may stand between them.

use super::super::keys::is_bare;
use super::cursor::{END, is_blank, is_line_end};
use super::{Kind, Lexer, State, got};

impl Lexer<'_> {
    pub(super) fn top(&mut self) -> State {
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

    pub(super) fn top_end(&mut self) -> State {
        match self.next() {
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
        }
    }

    pub(super) fn table_start(&mut self) -> State {
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

    pub(super) fn table_end(&mut self) -> State {
        self.emit(Kind::TableEnd);
        State::TopEnd
    }

    pub(super) fn array_table_end(&mut self) -> State {
        match self.next() {
            ']' => {
                self.emit(Kind::ArrayTableEnd);
                State::TopEnd
            }
            c => {
                let message = "expected end of table array name delimiter ']', but got ";
                self.complain(got(message, c, " instead"))
            }
        }
    }

    pub(super) fn table_name_start(&mut self) -> State {
        self.skip_blanks();
        match self.peek() {
            ']' | END => {
                self.complain("unexpected end of table name (table names cannot be empty)")
            }
            '.' => self.complain("unexpected table separator (table names cannot be empty)"),
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

    pub(super) fn table_name_end(&mut self) -> State {
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

    pub(super) fn bare_name(&mut self) -> State {
        if is_bare(self.next()) {
            return State::BareName;
        }
        self.backup();
        self.emit(Kind::Text);
        self.pop()
    }

    pub(super) fn quoted_name(&mut self) -> State {
        match self.next() {
            '"' => self.skip_to(State::String),
            '\'' => self.skip_to(State::RawString),
            c => self.complain(got("expected value but found ", c, " instead")),
        }
    }

    pub(super) fn key_start(&mut self) -> State {
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

    pub(super) fn key_name_start(&mut self) -> State {
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

    pub(super) fn key_end(&mut self) -> State {
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
}
