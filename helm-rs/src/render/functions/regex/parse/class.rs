//! Character classes: in brackets, by name, by escape.

use regex_syntax::hir::ClassUnicode;

use super::super::classes;
use super::Parser;
use super::error::{BAD_RANGE, NO_BRACKET, SyntaxError, error};
use super::lexical::{before, check_utf8, escape_number, next_char};

impl<'a> Parser<'a> {
    /// `\pN`, `\p{Name}`, `\d` and their negations.
    pub(super) fn class_escape(
        &self,
        text: &'a [u8],
    ) -> Result<Option<(ClassUnicode, &'a [u8])>, SyntaxError> {
        let (Some(b'\\'), Some(&letter)) = (text.first(), text.get(1)) else { return Ok(None) };
        let start = text.get(2..).unwrap_or_default();
        if !matches!(letter, b'p' | b'P') {
            let Some((mut class, negated)) = classes::perl(letter) else { return Ok(None) };
            self.adjust(&mut class, negated);
            return Ok(Some((class, start)));
        }
        let mut negated = letter == b'P';
        // Go's nextRune accepts the end of the text here and fails later on its name.
        let Some((c, rest)) = next_char(start)? else {
            return Err(error(BAD_RANGE, text));
        };
        let (sequence, name, rest) = if c == '{' {
            let Some(end) = text.iter().position(|&b| b == b'}') else {
                check_utf8(text)?;
                return Err(error(BAD_RANGE, text));
            };
            let name = text.get(3..end).unwrap_or_default();
            check_utf8(name)?;
            let rest = text.get(end + 1..).unwrap_or_default();
            (before(text, rest), name, rest)
        } else {
            let sequence = before(text, rest);
            (sequence, sequence.get(2..).unwrap_or_default(), rest)
        };
        let name = match name.strip_prefix(b"^") {
            Some(name) => {
                negated = !negated;
                name
            }
            None => name,
        };
        let mut class = classes::unicode(name).ok_or_else(|| error(BAD_RANGE, sequence))?;
        self.adjust(&mut class, negated);
        Ok(Some((class, rest)))
    }

    fn adjust(&self, class: &mut ClassUnicode, negated: bool) {
        if self.flags.fold {
            class.case_fold_simple();
        }
        if negated {
            class.negate();
        }
    }

    /// `[…]`
    pub(super) fn bracket(&mut self, whole: &'a [u8]) -> Result<&'a [u8], SyntaxError> {
        let mut text = whole.get(1..).unwrap_or_default();
        let negated = text.first() == Some(&b'^');
        if negated {
            text = text.get(1..).unwrap_or_default();
        }
        let mut class = ClassUnicode::empty();
        let mut first = true;
        while first || text.first() != Some(&b']') {
            first = false;
            if let Some((named, rest)) = posix_class(text)? {
                let (mut named, named_negated) = named;
                self.adjust(&mut named, named_negated);
                class.union(&named);
                text = rest;
                continue;
            }
            if let Some((escaped, rest)) = self.class_escape(text)? {
                class.union(&escaped);
                text = rest;
                continue;
            }
            let start = text;
            let (low, rest) = class_char(text, whole)?;
            text = rest;
            let mut high = low;
            if text.first() == Some(&b'-') && text.len() >= 2 && text.get(1) != Some(&b']') {
                let (end, rest) = class_char(text.get(1..).unwrap_or_default(), whole)?;
                high = end;
                text = rest;
                if high < low {
                    return Err(error(BAD_RANGE, before(start, text)));
                }
            }
            let mut range = classes::code_points(low, high);
            if self.flags.fold {
                range.case_fold_simple();
            }
            class.union(&range);
        }
        if negated {
            class.negate();
        }
        self.class(class);
        Ok(text.get(1..).unwrap_or_default())
    }
}

type NamedClass = (ClassUnicode, bool);

/// `[:alpha:]` inside brackets.
fn posix_class(text: &[u8]) -> Result<Option<(NamedClass, &[u8])>, SyntaxError> {
    let Some(start) = text.strip_prefix(b"[:") else { return Ok(None) };
    let Some(end) = start.windows(2).position(|pair| pair == b":]") else { return Ok(None) };
    let (name, rest) = start.split_at(end);
    let rest = rest.get(2..).unwrap_or_default();
    match classes::posix(name) {
        Some(class) => Ok(Some((class, rest))),
        None => Err(error(BAD_RANGE, before(text, rest))),
    }
}

/// One character of a class as its number, which may be a surrogate's.
fn class_char<'a>(text: &'a [u8], whole: &[u8]) -> Result<(u32, &'a [u8]), SyntaxError> {
    if text.first() == Some(&b'\\') {
        return escape_number(text);
    }
    match next_char(text)? {
        Some((c, rest)) => Ok((u32::from(c), rest)),
        None => Err(error(NO_BRACKET, whole)),
    }
}
