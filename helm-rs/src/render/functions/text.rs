//! Text of values and Go's view of text: runes, spaces, categories.

use gotemplate::value::LIST_STRING;
use gotemplate::{List, Str, Value};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::lists::slice_items;

/// Go's `utf8.RuneError`, which stands for a byte that is no UTF-8.
pub(super) const RUNE_ERROR: char = '\u{fffd}';

/// The runes of a text as Go's `range` yields them: each invalid byte is one U+FFFD.
pub(super) fn runes(text: &[u8]) -> impl Iterator<Item = char> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (rune, size) = first_rune(rest)?;
        rest = rest.get(size..).unwrap_or_default();
        Some(rune)
    })
}

/// The first rune and its size; an invalid byte is U+FFFD of size 1.
pub(super) fn first_rune(text: &[u8]) -> Option<(char, usize)> {
    if text.is_empty() {
        return None;
    }
    Some(match bstr::decode_utf8(text) {
        (Some(rune), size) => (rune, size),
        (None, _) => (RUNE_ERROR, 1),
    })
}

/// The last rune and its size; an invalid byte is U+FFFD of size 1.
pub(super) fn last_rune(text: &[u8]) -> Option<(char, usize)> {
    if text.is_empty() {
        return None;
    }
    Some(match bstr::decode_last_utf8(text) {
        (Some(rune), size) => (rune, size),
        (None, _) => (RUNE_ERROR, 1),
    })
}

/// Go's `strings.Map` for mappings that drop nothing.
pub(super) fn map_runes(text: &[u8], map: impl FnMut(char) -> char) -> String {
    runes(text).map(map).collect()
}

/// Go's `strings.TrimLeftFunc`.
pub(super) fn trim_left(mut text: &[u8], drop: impl Fn(char) -> bool) -> &[u8] {
    while let Some((_, size)) = first_rune(text).filter(|(rune, _)| drop(*rune)) {
        text = text.get(size..).unwrap_or_default();
    }
    text
}

/// Go's `strings.TrimRightFunc`.
pub(super) fn trim_right(mut text: &[u8], drop: impl Fn(char) -> bool) -> &[u8] {
    while let Some((_, size)) = last_rune(text).filter(|(rune, _)| drop(*rune)) {
        text = text.get(..text.len() - size).unwrap_or_default();
    }
    text
}

/// `strings.TrimSpace`.
pub(super) fn trim_space(text: &[u8]) -> &[u8] {
    trim_right(trim_left(text, char::is_whitespace), char::is_whitespace)
}

/// Go's `unicode.ToUpper`: the simple mapping, one rune to one, of Unicode 15.
pub(super) fn to_upper(rune: char) -> char {
    match rune {
        // Their capitals came after Unicode 15.
        '\u{19b}' | '\u{264}' => return rune,
        _ => {}
    }
    let mut mapped = rune.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(mapped), None) => mapped,
        // Runes whose full mapping is longer; only these have a simple one as well.
        _ => match rune {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(u32::from(rune) + 8).unwrap_or(rune)
            }
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => {
                char::from_u32(u32::from(rune) + 9).unwrap_or(rune)
            }
            _ => rune,
        },
    }
}

/// Go's `unicode.ToTitle`: upper case except for the Latin digraphs and for Georgian.
pub(super) fn to_title(rune: char) -> char {
    match rune {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        '\u{10d0}'..='\u{10ff}' => rune,
        _ => to_upper(rune),
    }
}

/// Go's `unicode.ToLower`.
pub(super) fn to_lower(rune: char) -> char {
    // The only rune whose full mapping is longer than the simple one.
    if rune == '\u{130}' { 'i' } else { rune.to_lowercase().next().unwrap_or(rune) }
}

/// Go's categories, from the Unicode tables.
pub(super) mod category {
    use super::{GeneralCategory as G, UnicodeGeneralCategory};

    /// `unicode.IsUpper`: category Lu, which is narrower than Rust's property.
    pub(in super::super) fn is_upper(rune: char) -> bool {
        rune.general_category() == G::UppercaseLetter
    }

    /// `unicode.IsLower`.
    pub(in super::super) fn is_lower(rune: char) -> bool {
        rune.general_category() == G::LowercaseLetter
    }

    /// `unicode.IsTitle`.
    pub(in super::super) fn is_title(rune: char) -> bool {
        rune.general_category() == G::TitlecaseLetter
    }

    /// `unicode.IsLetter`.
    pub(in super::super) fn is_letter(rune: char) -> bool {
        matches!(
            rune.general_category(),
            G::UppercaseLetter
                | G::LowercaseLetter
                | G::TitlecaseLetter
                | G::ModifierLetter
                | G::OtherLetter
        )
    }

    /// `unicode.IsDigit`.
    pub(in super::super) fn is_digit(rune: char) -> bool {
        rune.general_category() == G::DecimalNumber
    }

    /// `unicode.IsNumber`.
    pub(in super::super) fn is_number(rune: char) -> bool {
        matches!(rune.general_category(), G::DecimalNumber | G::LetterNumber | G::OtherNumber)
    }

    /// `unicode.IsPunct`.
    pub(in super::super) fn is_punct(rune: char) -> bool {
        matches!(
            rune.general_category(),
            G::ConnectorPunctuation
                | G::DashPunctuation
                | G::OpenPunctuation
                | G::ClosePunctuation
                | G::InitialPunctuation
                | G::FinalPunctuation
                | G::OtherPunctuation
        )
    }
}

/// Sprig's `strval`: strings and bytes as they are, errors and stringers by their text, the
/// rest as `%v`.
pub(super) fn strval(value: &Value) -> Str {
    match value {
        Value::String(text) | Value::Bytes(text) => text.clone(),
        other => gotemplate::fmt::to_string(other),
    }
}

/// Sprig's `strslice`: a list's items as text without the nil ones, or one text.
pub(super) fn strslice(value: &Value) -> List {
    match value {
        Value::Nil => return List::strings::<Str>([]),
        Value::List(list) if std::ptr::eq(list.ty(), &raw const LIST_STRING) => {
            return list.clone();
        }
        _ => {}
    }
    let Some(items) = slice_items(value) else { return List::strings([strval(value)]) };
    List::strings(items.iter().filter(|item| !matches!(item, Value::Nil)).map(strval))
}
