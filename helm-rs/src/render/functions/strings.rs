//! Strings: the string part of sprig's function table and `strings.go`.

use bstr::ByteSlice;
use gotemplate::function::{Rest, Strings};
use gotemplate::value::MAP_STRING;
use gotemplate::{CallError, Function, FunctionMap, List, Map, Runtime, Str, Value, fmt, strconv};

use super::text::{
    self, category, first_rune, map_runes, runes, strslice, strval, trim_left, trim_right,
    trim_space,
};
use super::{case, limits, wrap};
use crate::render::host::Host;

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("hello", Function::new(|| "Hello!"));

    functions.insert("upper", Function::new(|text: Str| map_runes(&text, text::to_upper)));
    functions.insert("lower", Function::new(|text: Str| map_runes(&text, text::to_lower)));
    functions.insert("title", Function::new(|text: Str| case::title(&text)));
    functions.insert("untitle", Function::new(|text: Str| case::untitle(&text)));
    functions.insert("swapcase", Function::new(|text: Str| case::swap(&text)));
    functions.insert("camelcase", Function::new(|text: Str| case::pascal(&text)));
    functions.insert("snakecase", Function::new(|text: Str| case::separated(&text, b'_')));
    functions.insert("kebabcase", Function::new(|text: Str| case::separated(&text, b'-')));
    functions.insert("shuffle", Function::new(shuffle));
    functions.insert("initials", Function::new(|text: Str| initials(&text)));
    functions.insert("nospace", Function::new(no_space));
    functions.insert(
        "plural",
        Function::new(|one: Str, many: Str, count: i64| if count == 1 { one } else { many }),
    );

    functions.insert("trim", Function::new(|text: Str| Str::from(trim_space(&text))));
    functions.insert("trimAll", Function::new(trim_all));
    functions.insert("trimall", Function::new(trim_all));
    functions.insert(
        "trimPrefix",
        Function::new(|prefix: Str, text: Str| {
            text.strip_prefix(prefix.as_bytes()).map(Str::from).unwrap_or(text)
        }),
    );
    functions.insert(
        "trimSuffix",
        Function::new(|suffix: Str, text: Str| {
            text.strip_suffix(suffix.as_bytes()).map(Str::from).unwrap_or(text)
        }),
    );
    functions.insert(
        "hasPrefix",
        Function::new(|prefix: Str, text: Str| text.starts_with(prefix.as_bytes())),
    );
    functions.insert(
        "hasSuffix",
        Function::new(|suffix: Str, text: Str| text.ends_with(suffix.as_bytes())),
    );
    functions.insert(
        "contains",
        Function::new(|part: Str, text: Str| text.contains_str(part.as_bytes())),
    );

    functions.insert("trunc", Function::new(trunc));
    functions.insert("substr", Function::new(substr));
    functions.insert("abbrev", Function::new(|width: i64, text: Str| wrap::abbrev(width, text)));
    functions.insert(
        "abbrevboth",
        Function::new(|left: i64, right: i64, text: Str| wrap::abbrev_both(left, right, text)),
    );
    functions.insert(
        "wrap",
        Function::new(|width: i64, text: Str| wrap::wrap(&text, width, b"", false)),
    );
    functions.insert(
        "wrapWith",
        Function::new(|width: i64, separator: Str, text: Str| {
            wrap::wrap(&text, width, &separator, true)
        }),
    );

    functions.insert("repeat", Function::new(|count: i64, text: Str| repeat(&text, count)));
    functions.insert("indent", Function::new(|spaces: i64, text: Str| indent("", spaces, &text)));
    functions
        .insert("nindent", Function::new(|spaces: i64, text: Str| indent("\n", spaces, &text)));
    functions.insert(
        "replace",
        Function::new(|old: Str, new: Str, text: Str| replace(&text, &old, &new)),
    );

    functions.insert("quote", Function::new(quote));
    functions.insert("squote", Function::new(single_quote));
    functions.insert("cat", Function::new(cat));
    functions.insert("toString", Function::new(|value: Value| strval(&value)));
    functions.insert("toStrings", Function::new(|value: Value| Strings(strslice(&value))));
    functions.insert("join", Function::new(join));
    functions.insert(
        "split",
        Function::new(|separator: Str, text: Str| numbered(split(&text, &separator, None))),
    );
    functions.insert(
        "splitn",
        Function::new(|separator: Str, count: i64, text: Str| {
            numbered(match usize::try_from(count) {
                Ok(count) => split(&text, &separator, Some(count)),
                Err(_) => split(&text, &separator, None),
            })
        }),
    );
    functions.insert(
        "splitList",
        Function::new(|separator: Str, text: Str| {
            Strings(List::strings(split(&text, &separator, None)))
        }),
    );
}

/// The runes in random order (`xstrings.Shuffle`).
fn shuffle(runtime: &mut dyn Runtime, text: Str) -> Result<String, CallError> {
    let mut runes: Vec<char> = runes(&text).collect();
    let host = Host::of(runtime)?;
    for i in (1..runes.len()).rev() {
        let other = host.random_below(i as u64 + 1);
        runes.swap(i, usize::try_from(other).unwrap_or(i));
    }
    Ok(runes.into_iter().collect())
}

/// The first letter of each word. The library looks at bytes as if they were runes, so
/// letters beyond ASCII come apart.
fn initials(text: &[u8]) -> String {
    let mut gap = true;
    let mut letters = String::new();
    for rune in text.iter().map(|byte| char::from(*byte)) {
        if rune.is_whitespace() {
            gap = true;
        } else if gap {
            letters.push(rune);
            gap = false;
        }
    }
    letters
}

/// `DeleteWhiteSpace`, which also reads bytes as runes as soon as it removes one.
fn no_space(text: Str) -> Str {
    if text.iter().any(|byte| char::from(*byte).is_whitespace()) {
        let kept = text.iter().map(|byte| char::from(*byte)).filter(|rune| !rune.is_whitespace());
        return kept.collect::<String>().into();
    }
    text
}

/// Go's `strings.Trim`: a set of runes, and a set that holds no UTF-8 matches all invalid
/// bytes.
fn trim_all(set: Str, text: Str) -> Str {
    let set: Vec<char> = runes(&set).collect();
    let drop = |rune| set.contains(&rune);
    trim_right(trim_left(&text, drop), drop).into()
}

/// The first `count` bytes, or with a negative count the last.
fn trunc(count: i64, text: Str) -> Str {
    let part = if let Ok(count) = usize::try_from(count) {
        text.get(..count)
    } else {
        let drop = i64::try_from(text.len()).unwrap_or(i64::MAX).saturating_add(count);
        usize::try_from(drop).ok().filter(|drop| *drop > 0).and_then(|drop| text.get(drop..))
    };
    match part {
        Some(part) if part.len() < text.len() => part.into(),
        _ => text,
    }
}

/// Sprig's `substring`, with Go's panics for bounds that cross or lie outside.
fn substr(start: i64, end: i64, text: Str) -> Result<Str, CallError> {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let bytes = |from: i64, to: i64| {
        let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
        range.and_then(|(from, to)| text.get(from..to)).map(Str::from).unwrap_or_default()
    };
    let out_of_range = |what: String| {
        Err(CallError::from(format!("runtime error: slice bounds out of range {what}")))
    };
    if start < 0 {
        return match end {
            ..0 => out_of_range(format!("[:{end}]")),
            _ if end > length => out_of_range(format!("[:{end}] with length {length}")),
            _ => Ok(bytes(0, end)),
        };
    }
    let end = if end < 0 || end > length { length } else { end };
    if start > end {
        return out_of_range(format!("[{start}:{end}]"));
    }
    Ok(bytes(start, end))
}

/// Go's `strings.Repeat` with its panic.
fn repeat(text: &[u8], count: i64) -> Result<Vec<u8>, CallError> {
    let Ok(count) = usize::try_from(count) else {
        return Err(CallError::new("strings: negative Repeat count"));
    };
    if text.len().checked_mul(count).is_none_or(|bytes| i64::try_from(bytes).is_err()) {
        return Err(CallError::new("strings: Repeat output length overflow"));
    }
    limits::check_bytes(text.len().checked_mul(count))?;
    Ok(text.repeat(count))
}

/// Sprig's `indent`: spaces before every line, empty ones included.
fn indent(before: &str, spaces: i64, text: &[u8]) -> Result<Vec<u8>, CallError> {
    let pad = repeat(b" ", spaces)?;
    let breaks = text.find_iter(b"\n").count();
    let length = pad.len().checked_mul(breaks + 1).and_then(|pad| pad.checked_add(text.len()));
    limits::check_bytes(length)?;
    let mut out = Vec::with_capacity(length.unwrap_or(0) + before.len());
    out.extend_from_slice(before.as_bytes());
    for (i, line) in text.split_str(b"\n").enumerate() {
        if i > 0 {
            out.push(b'\n');
        }
        out.extend_from_slice(&pad);
        out.extend_from_slice(line);
    }
    Ok(out)
}

/// Go's `strings.ReplaceAll`; an empty `old` matches before every rune and at the end.
fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, CallError> {
    if !old.is_empty() {
        let count = text.find_iter(old).count();
        limits::check_bytes(count.checked_mul(new.len()).and_then(|n| n.checked_add(text.len())))?;
        return Ok(text.replace(old, new));
    }
    let gaps = runes(text).count() + 1;
    limits::check_bytes(gaps.checked_mul(new.len()).and_then(|n| n.checked_add(text.len())))?;
    let mut out = new.to_vec();
    let mut rest = text;
    while let Some((_, size)) = first_rune(rest) {
        let (rune, tail) = rest.split_at(size.min(rest.len()));
        out.extend_from_slice(rune);
        out.extend_from_slice(new);
        rest = tail;
    }
    Ok(out)
}

/// Joins what `show` appends for each value that is not nil with a space.
fn spaced(values: &[Value], show: impl Fn(&mut Vec<u8>, &Value)) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::new();
    for (i, value) in values.iter().filter(|value| !matches!(value, Value::Nil)).enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        show(&mut out, value);
        limits::check_bytes(Some(out.len()))?;
    }
    Ok(out)
}

fn quote(values: Rest<Value>) -> Result<Vec<u8>, CallError> {
    spaced(&values.0, |out, value| strconv::append_quote(out, &strval(value)))
}

fn single_quote(values: Rest<Value>) -> Result<Vec<u8>, CallError> {
    spaced(&values.0, |out, value| {
        out.push(b'\'');
        fmt::append_value(out, value);
        out.push(b'\'');
    })
}

fn cat(values: Rest<Value>) -> Result<Vec<u8>, CallError> {
    spaced(&values.0, fmt::append_value)
}

fn join(separator: Str, value: Value) -> Result<Vec<u8>, CallError> {
    let texts = strslice(&value);
    let mut out = Vec::new();
    for (i, text) in texts.items().iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(&separator);
        }
        if let Value::String(text) = text {
            out.extend_from_slice(text);
        }
        limits::check_bytes(Some(out.len()))?;
    }
    Ok(out)
}

/// Go's `strings.SplitN` for a count that is not negative, `strings.Split` without one. An
/// empty separator splits between runes.
fn split(text: &[u8], separator: &[u8], count: Option<usize>) -> Vec<Str> {
    let count = count.unwrap_or(usize::MAX);
    if count == 0 {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while parts.len() + 1 < count {
        let cut = if separator.is_empty() {
            first_rune(rest).map(|(_, size)| size).filter(|size| *size < rest.len())
        } else {
            rest.find(separator)
        };
        let Some(cut) = cut else { break };
        parts.push(rest.get(..cut).unwrap_or_default().into());
        rest = rest.get(cut + separator.len()..).unwrap_or_default();
    }
    if !(separator.is_empty() && text.is_empty()) {
        parts.push(rest.into());
    }
    parts
}

/// The parts under the keys `_0`, `_1` and so on, as a `map[string]string`.
fn numbered(parts: Vec<Str>) -> Map {
    let entries = parts.into_iter().enumerate();
    let entries = entries.map(|(i, part)| (format!("_{i}").into(), Value::String(part)));
    Map::new(&MAP_STRING, entries.collect())
}

/// Go's `isSeparator` of `strings.Title`.
pub(super) fn is_separator(rune: char) -> bool {
    if rune.is_ascii() {
        return !rune.is_ascii_alphanumeric() && rune != '_';
    }
    !category::is_letter(rune) && !category::is_digit(rune) && rune.is_whitespace()
}
