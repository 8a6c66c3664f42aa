//! Path arithmetic as Go's `path` and `path/filepath` do it on Unix.
//!
//! Names inside charts are slash-separated text on every system, so these functions work on `str`
//! and never touch the file system.

use std::borrow::Cow;

/// A pattern that [`matches`] cannot read (`filepath.ErrBadPattern`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

/// The shortest equivalent of a path by lexical processing, as `path.Clean`.
///
/// ```
/// assert_eq!(helm_rs::gopath::clean("a/./b/../c//d/"), "a/c/d");
/// assert_eq!(helm_rs::gopath::clean(""), ".");
/// assert_eq!(helm_rs::gopath::clean("/../a"), "/a");
/// ```
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if !rooted => parts.push(".."),
                _ => {}
            },
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// The last element of a path, as `path.Base`: `.` for an empty path, `/` for slashes only.
pub fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return "/";
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// The file name extension with its dot, as `path.Ext`: empty without a dot in the last element.
pub fn ext(path: &str) -> &str {
    let start = path.rfind('/').map_or(0, |slash| slash + 1);
    match path.get(start..).and_then(|name| name.rfind('.')) {
        Some(dot) => path.get(start + dot..).unwrap_or(""),
        None => "",
    }
}

/// Joins two path elements and cleans the result, as `path.Join`; empty elements are ignored.
pub fn join(first: &str, second: &str) -> String {
    let joined: Cow<'_, str> = match (first.is_empty(), second.is_empty()) {
        (true, true) => return String::new(),
        (true, false) => second.into(),
        (false, true) => first.into(),
        (false, false) => format!("{first}/{second}").into(),
    };
    clean(&joined)
}

/// Whether a whole name matches a shell pattern, as `filepath.Match` on Unix: `*` and `?` stop at
/// slashes, `[a-z]` and `[^a-z]` are classes, a backslash takes the next character literally.
///
/// # Errors
///
/// [`BadPattern`] where Go reports it: an unfinished class or a trailing backslash in a part that
/// was reached. Parts behind a star whose front part did not match are not looked at.
pub fn matches(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut pattern, mut name) = (pattern.as_slice(), name.as_slice());
    while !pattern.is_empty() {
        let (star, chunk, rest) = scan_chunk(pattern);
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(!name.contains(&'/'));
        }
        let matched = match_chunk(chunk, name)?;
        if let Some(left) = matched
            && (left.is_empty() || !pattern.is_empty())
        {
            name = left;
            continue;
        }
        if star && let Some(left) = match_after_star(chunk, name, pattern.is_empty())? {
            name = left;
            continue;
        }
        return Ok(false);
    }
    Ok(name.is_empty())
}

/// Tries a chunk behind a star at each later position that the star may reach.
fn match_after_star<'a>(
    chunk: &[char],
    name: &'a [char],
    last: bool,
) -> Result<Option<&'a [char]>, BadPattern> {
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        if first == '/' {
            break;
        }
        if let Some(left) = match_chunk(chunk, tail)?
            && (!last || left.is_empty())
        {
            return Ok(Some(left));
        }
        rest = tail;
    }
    Ok(None)
}

/// Splits off leading stars and the following part up to the next star outside a class.
fn scan_chunk(pattern: &[char]) -> (bool, &[char], &[char]) {
    let stars = pattern.iter().take_while(|&&c| c == '*').count();
    let pattern = pattern.get(stars..).unwrap_or_default();
    let mut in_class = false;
    let mut index = 0;
    while let Some(&c) = pattern.get(index) {
        match c {
            '\\' if index + 1 < pattern.len() => index += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '*' if !in_class => break,
            _ => {}
        }
        index += 1;
    }
    let (chunk, rest) = pattern.split_at(index.min(pattern.len()));
    (stars > 0, chunk, rest)
}

/// Matches one star-free chunk at the start of a name and returns what is left of the name.
/// After the first mismatch the chunk is only checked for well-formedness.
fn match_chunk<'a>(
    mut chunk: &[char],
    mut name: &'a [char],
) -> Result<Option<&'a [char]>, BadPattern> {
    let mut failed = false;
    while let Some((&first, after)) = chunk.split_first() {
        failed |= name.is_empty();
        match first {
            '[' => {
                let (rest, hit) = match_class(after, name.first().copied(), failed)?;
                chunk = rest;
                if !failed {
                    name = name.get(1..).unwrap_or_default();
                    failed = !hit;
                }
            }
            '?' => {
                if !failed {
                    failed = name.first() == Some(&'/');
                    name = name.get(1..).unwrap_or_default();
                }
                chunk = after;
            }
            _ => {
                let (literal, rest) = if first == '\\' {
                    let (&escaped, rest) = after.split_first().ok_or(BadPattern)?;
                    (escaped, rest)
                } else {
                    (first, after)
                };
                if !failed {
                    failed = name.first() != Some(&literal);
                    name = name.get(1..).unwrap_or_default();
                }
                chunk = rest;
            }
        }
    }
    Ok(if failed { None } else { Some(name) })
}

/// Reads a class behind its `[` and says whether `c` is in it.
fn match_class(
    mut class: &[char],
    c: Option<char>,
    failed: bool,
) -> Result<(&[char], bool), BadPattern> {
    let negated = class.first() == Some(&'^');
    if negated {
        class = class.get(1..).unwrap_or_default();
    }
    let mut hit = false;
    let mut ranges = 0usize;
    loop {
        if class.first() == Some(&']') && ranges > 0 {
            class = class.get(1..).unwrap_or_default();
            break;
        }
        let (low, rest) = class_char(class)?;
        let (high, rest) = if rest.first() == Some(&'-') {
            class_char(rest.get(1..).unwrap_or_default())?
        } else {
            (low, rest)
        };
        class = rest;
        if !failed && let Some(c) = c {
            hit |= low <= c && c <= high;
        }
        ranges += 1;
    }
    Ok((class, hit != negated))
}

/// One possibly escaped character of a class, as Go's `getEsc`.
fn class_char(class: &[char]) -> Result<(char, &[char]), BadPattern> {
    let (&first, mut rest) = class.split_first().ok_or(BadPattern)?;
    let mut c = first;
    if c == '-' || c == ']' {
        return Err(BadPattern);
    }
    if c == '\\' {
        let (&escaped, after) = rest.split_first().ok_or(BadPattern)?;
        c = escaped;
        rest = after;
    }
    // A class cannot end the pattern without its bracket.
    if rest.is_empty() { Err(BadPattern) } else { Ok((c, rest)) }
}
