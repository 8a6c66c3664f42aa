//! Letter case: Go's `strings.Title`, github.com/Masterminds/goutils v1.1.1 (`wordutils.go`)
//! and github.com/huandu/xstrings v1.5.0 (`convert.go`).

use super::strings::is_separator;
use super::text::{RUNE_ERROR, category, first_rune, map_runes, to_lower, to_title, to_upper};

/// Go's `strings.Title`.
pub(super) fn title(text: &[u8]) -> String {
    let mut previous = ' ';
    map_runes(text, |rune| {
        let starts = is_separator(previous);
        previous = rune;
        if starts { to_title(rune) } else { rune }
    })
}

/// `Uncapitalize`: the first rune of each word in lower case.
pub(super) fn untitle(text: &[u8]) -> String {
    let mut starts = true;
    map_runes(text, |rune| {
        if rune.is_whitespace() {
            starts = true;
            rune
        } else if std::mem::take(&mut starts) {
            to_lower(rune)
        } else {
            rune
        }
    })
}

/// `SwapCase`: a lower-case letter at the start or after white space becomes title case.
pub(super) fn swap(text: &[u8]) -> String {
    let mut space = true;
    map_runes(text, |rune| {
        if category::is_upper(rune) || category::is_title(rune) {
            space = false;
            to_lower(rune)
        } else if category::is_lower(rune) {
            if std::mem::take(&mut space) { to_title(rune) } else { to_upper(rune) }
        } else {
            space = rune.is_whitespace();
            rune
        }
    })
}

/// `isConnector`: what separates words.
fn is_connector(rune: char) -> bool {
    rune == '-' || rune == '_' || rune.is_whitespace()
}

/// `ToPascalCase`, which sprig calls `camelcase`.
pub(super) fn pascal(text: &[u8]) -> String {
    let mut runes = super::text::runes(text).peekable();
    let mut out = String::new();
    while let Some(rune) = runes.next_if(|rune| is_connector(*rune)) {
        out.push(rune);
    }
    let Some(first) = runes.next() else {
        // The library writes the last one again.
        out.extend(out.chars().next_back());
        return out;
    };
    let mut upper_word = category::is_upper(first);
    let mut current = to_upper(first);
    for rune in runes {
        let previous = std::mem::replace(&mut current, rune);
        if is_connector(previous) {
            if is_connector(rune) {
                out.push(previous);
            } else {
                upper_word = category::is_upper(rune);
                current = to_upper(rune);
            }
            continue;
        }
        upper_word &= category::is_upper(rune);
        if upper_word {
            current = to_lower(rune);
        }
        out.push(previous);
    }
    out.push(current);
    out
}

/// The kinds of words that [`separated`] tells apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Nothing, or bytes that are no UTF-8.
    Invalid,
    Number,
    UpperCase,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

/// `ToSnakeCase` and `ToKebabCase`: words in lower case joined by `connector`.
pub(super) fn separated(text: &[u8], connector: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    let (mut kind, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if kind != Word::Connector {
            push_word(&mut out, kind, word, connector);
        }
        let previous = (kind, word);
        (kind, word, rest) = next_word(rest);
        match previous.0 {
            Word::Number => {
                (kind, word, rest) = push_words(&mut out, (kind, word, rest), connector);
                if !matches!(kind, Word::Invalid | Word::Punctuation | Word::Connector) {
                    out.push(connector);
                }
            }
            Word::Connector => push_word(&mut out, previous.0, previous.1, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if !matches!(kind, Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind == Word::Alphabet {
                    // Lower-case letters follow, so the number begins a word: http_2xx.
                    out.push(connector);
                    push_word(&mut out, Word::Number, number, connector);
                    (kind, word, rest) = push_words(&mut out, (kind, word, rest), connector);
                    if !matches!(kind, Word::Invalid | Word::Punctuation | Word::Connector) {
                        out.push(connector);
                    }
                } else {
                    // The number ends the word before it: bld4_floor.
                    push_word(&mut out, Word::Number, number, connector);
                    if !matches!(kind, Word::Connector | Word::Punctuation) {
                        out.push(connector);
                    }
                }
            }
        }
    }
    push_word(&mut out, kind, word, connector);
    out
}

type Next<'a> = (Word, &'a [u8], &'a [u8]);

/// Writes letters and numbers until another kind of word comes, and returns that.
fn push_words<'a>(out: &mut Vec<u8>, mut next: Next<'a>, connector: u8) -> Next<'a> {
    while matches!(next.0, Word::Alphabet | Word::Number) {
        push_word(out, next.0, next.1, connector);
        next = next_word(next.2);
    }
    next
}

/// The library's `toLower`: only upper-case words and connectors change.
fn push_word(out: &mut Vec<u8>, kind: Word, word: &[u8], connector: u8) {
    if !matches!(kind, Word::UpperCase | Word::Connector) {
        out.extend_from_slice(word);
        return;
    }
    for rune in super::text::runes(word) {
        if is_connector(rune) {
            out.push(connector);
        } else {
            let lower = if category::is_upper(rune) { to_lower(rune) } else { rune };
            out.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

/// The library's `isAlphabet`: letters other than Han ideographs.
fn is_alphabet(rune: char) -> bool {
    category::is_letter(rune)
        && !matches!(
            rune,
            '\u{4e00}'..='\u{9fcc}'
                | '\u{3400}'..='\u{4d85}'
                | '\u{20000}'..='\u{2b81d}'
        )
}

/// The first word, its kind, and what follows it.
fn next_word(text: &[u8]) -> Next<'_> {
    let (rune, size) = next_valid_rune(text, RUNE_ERROR);
    if rune == RUNE_ERROR {
        let (word, rest) = text.split_at(size.min(text.len()));
        return (Word::Invalid, word, rest);
    }
    let (kind, length) = if is_connector(rune) {
        (Word::Connector, take_while(text, size, rune, is_connector))
    } else if category::is_punct(rune) {
        (Word::Punctuation, take_while(text, size, rune, category::is_punct))
    } else if category::is_upper(rune) {
        (Word::UpperCase, upper_case_word(text, size, rune))
    } else if is_alphabet(rune) {
        let more = |rune| is_alphabet(rune) && !category::is_upper(rune);
        (Word::Alphabet, take_while(text, size, rune, more))
    } else if category::is_number(rune) {
        (Word::Number, take_while(text, size, rune, category::is_number))
    } else {
        let more = |rune| {
            !is_connector(rune)
                && !is_alphabet(rune)
                && !category::is_number(rune)
                && !category::is_punct(rune)
        };
        (Word::Other, take_while(text, size, rune, more))
    };
    let (word, rest) = text.split_at(length.min(text.len()));
    (kind, word, rest)
}

/// How far a word reaches whose first `length` bytes, which end in `last`, are taken
/// already. Bytes that are no UTF-8 belong to what follows them, or to the word at the end.
fn take_while(text: &[u8], length: usize, last: char, more: impl Fn(char) -> bool) -> usize {
    let (mut length, mut last) = (length, last);
    while let Some(rest) = text.get(length..).filter(|rest| !rest.is_empty()) {
        let (rune, size) = next_valid_rune(rest, last);
        last = rune;
        if !more(rune) {
            break;
        }
        length += size;
    }
    length
}

/// A word that begins in upper case: `Word`, or `HTTP` of `HTTPServer`, whose `S` belongs to
/// the next word.
fn upper_case_word(text: &[u8], first_size: usize, first: char) -> usize {
    let rest = text.get(first_size..).unwrap_or_default();
    if rest.is_empty() {
        return first_size;
    }
    let (second, second_size) = next_valid_rune(rest, first);
    let mut length = first_size + second_size;
    if !category::is_upper(second) {
        if !is_alphabet(second) {
            return first_size;
        }
        return take_while(text, length, second, |rune| {
            is_alphabet(rune) && !category::is_upper(rune)
        });
    }
    let (mut last, mut last_size) = (second, second_size);
    while let Some(rest) = text.get(length..).filter(|rest| !rest.is_empty()) {
        let (rune, size) = next_valid_rune(rest, last);
        if !category::is_upper(rune) {
            if is_alphabet(rune) {
                length -= last_size;
            }
            break;
        }
        (last, last_size) = (rune, size);
        length += size;
    }
    length
}

/// The next rune that is one, and the bytes up to and including it; `previous` when there
/// is none.
fn next_valid_rune(text: &[u8], previous: char) -> (char, usize) {
    let mut size = 0;
    while let Some((rune, width)) = first_rune(text.get(size..).unwrap_or_default()) {
        size += width;
        if rune != RUNE_ERROR {
            return (rune, size);
        }
    }
    (previous, size)
}
