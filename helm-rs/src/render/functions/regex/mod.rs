//! Regular expressions (`sprig/regex.go`) with Go's syntax, matching rules and errors.

mod classes;
mod parse;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gotemplate::strconv::{can_backquote, is_letter_or_digit};
use gotemplate::{CallError, Function, FunctionMap, List, Str};
use regex_automata::meta;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

use crate::gotext::quote;

/// The most memory that one compiled expression may take, in bytes. Go allows 128 MiB.
const COMPILED_SIZE: usize = 64 << 20;
/// Patterns nested deeper than this are compiled on a stack of their own if need be.
const SHALLOW: usize = 50;
/// Bytes of that stack.
const DEEP_STACK: usize = 8 << 20;
/// The most expressions that are kept compiled.
const CACHED: usize = 512;

/// A compiled expression.
struct Regex {
    program: meta::Regex,
    names: Vec<String>,
    /// Whether the pattern itself is empty, which `Split` looks at.
    empty: bool,
}

/// Compiled expressions, shared by the functions: charts use few of them, many times.
#[derive(Clone, Default)]
struct Cache(Arc<Mutex<HashMap<Vec<u8>, Arc<Regex>>>>);

/// A compiled expression, for use outside templates.
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles an expression; the error is Go's text.
    pub(crate) fn parse(pattern: &[u8]) -> Result<Self, String> {
        Regex::new(pattern).map(Self).map_err(|error| error.to_string())
    }

    /// Whether the expression fits anywhere in the text.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

impl Cache {
    /// Go's `regexp.Compile`.
    fn compile(&self, pattern: &Str) -> Result<Arc<Regex>, parse::SyntaxError> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = cache.get(pattern.as_bytes()) {
            return Ok(Arc::clone(regex));
        }
        let regex = Arc::new(Regex::new(pattern.as_bytes())?);
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(pattern.as_bytes().to_vec(), Arc::clone(&regex));
        Ok(regex)
    }

    /// For the functions that return an error.
    fn checked(&self, pattern: &Str) -> Result<Arc<Regex>, CallError> {
        self.compile(pattern).map_err(|error| CallError::new(error.message()))
    }

    /// Go's `regexp.MustCompile`, with the text of its panic.
    fn must(&self, pattern: &Str) -> Result<Arc<Regex>, CallError> {
        self.compile(pattern).map_err(|error| {
            let mut message = b"regexp: Compile(".to_vec();
            if can_backquote(pattern.as_bytes()) {
                message.push(b'`');
                message.extend_from_slice(pattern.as_bytes());
                message.push(b'`');
            } else {
                message.extend_from_slice(quote(pattern.as_bytes()).as_bytes());
            }
            message.extend_from_slice(b"): ");
            message.extend_from_slice(&error.message());
            CallError::new(message)
        })
    }
}

/// A text in which matches are looked for. Go reads each byte that is not UTF-8 as U+FFFD;
/// such a text is searched in rewritten form.
struct Haystack<'a> {
    original: &'a [u8],
    text: Cow<'a, [u8]>,
    /// For a rewritten text: where the original of each of its bytes starts, and the end.
    origins: Vec<usize>,
}

impl<'a> Haystack<'a> {
    fn new(original: &'a [u8]) -> Self {
        if std::str::from_utf8(original).is_ok() {
            return Self { original, text: Cow::Borrowed(original), origins: Vec::new() };
        }
        let mut text = Vec::with_capacity(original.len() + 8);
        let mut origins = Vec::with_capacity(original.len() + 8);
        let mut at = 0;
        for chunk in original.utf8_chunks() {
            for byte in chunk.valid().bytes() {
                text.push(byte);
                origins.push(at);
                at += 1;
            }
            for _ in chunk.invalid() {
                text.extend_from_slice("\u{fffd}".as_bytes());
                origins.extend([at; 3]);
                at += 1;
            }
        }
        origins.push(at);
        Self { original, text: Cow::Owned(text), origins }
    }

    fn place(&self, at: usize) -> usize {
        if self.origins.is_empty() {
            return at;
        }
        self.origins.get(at).copied().unwrap_or(self.original.len())
    }

    /// The original bytes between two places of the searched text.
    fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        self.original.get(self.place(start)..self.place(end)).unwrap_or_default()
    }

    fn len(&self) -> usize {
        self.text.len()
    }

    /// The length of the character at a place, 0 at the end.
    fn width(&self, at: usize) -> usize {
        match self.text.get(at) {
            None => 0,
            Some(0..0x80) => 1,
            Some(0..0xe0) => 2,
            Some(0..0xf0) => 3,
            Some(_) => 4,
        }
    }
}

/// Why Go's `regexp.Compile` refuses a pattern, if it does.
pub(crate) fn syntax_error(pattern: &[u8]) -> Option<String> {
    parse::parse(pattern).err().map(|error| error.to_string())
}

impl Regex {
    fn new(pattern: &[u8]) -> Result<Self, parse::SyntaxError> {
        let parsed = parse::parse(pattern)?;
        let build = || {
            meta::Builder::new()
                .configure(meta::Config::new().nfa_size_limit(Some(COMPILED_SIZE)))
                .build_from_hir(&parsed.hir)
                .ok()
        };
        // The compiler recurses; a thousand levels are allowed.
        let program = if parsed.height > SHALLOW {
            stacker::maybe_grow(DEEP_STACK / 2, DEEP_STACK, build)
        } else {
            build()
        };
        let program = program.ok_or_else(|| parse::SyntaxError::large(pattern))?;
        Ok(Self { program, names: parsed.names, empty: pattern.is_empty() })
    }

    fn is_match(&self, text: &[u8]) -> bool {
        let haystack = Haystack::new(text);
        self.program.is_match(Input::new(&*haystack.text))
    }

    fn find_at(&self, haystack: &Haystack<'_>, at: usize) -> Option<(usize, usize)> {
        let input = Input::new(&*haystack.text).range(at..).anchored(Anchored::No);
        self.program.search(&input).map(|found| (found.start(), found.end()))
    }

    /// Go's `allMatches`: at most `limit` matches; an empty one right after another does
    /// not count.
    fn find_all(&self, haystack: &Haystack<'_>, limit: i64) -> Vec<(usize, usize)> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let mut at = 0;
        let mut previous = None;
        while found.len() < limit && at <= haystack.len() {
            let Some((start, end)) = self.find_at(haystack, at) else { break };
            let mut accept = true;
            if end == at {
                accept = previous != Some(start);
                at += haystack.width(at).max(1);
            } else {
                at = end;
            }
            previous = Some(end);
            if accept {
                found.push((start, end));
            }
        }
        found
    }

    /// Go's `replaceAll`.
    fn replace_all(
        &self,
        text: &[u8],
        mut replacement: impl FnMut(&mut Vec<u8>, &Haystack<'_>, &Captures),
        groups: bool,
    ) -> Vec<u8> {
        let haystack = Haystack::new(text);
        let mut out = Vec::with_capacity(text.len());
        let mut last_end = 0;
        let mut at = 0;
        let mut captures = if groups {
            self.program.create_captures()
        } else {
            Captures::matches(self.program.group_info().clone())
        };
        while at <= haystack.len() {
            let input = Input::new(&*haystack.text).range(at..);
            self.program.search_captures(&input, &mut captures);
            let Some(whole) = captures.get_match() else { break };
            out.extend_from_slice(haystack.slice(last_end, whole.start()));
            if whole.end() > last_end || whole.start() == 0 {
                replacement(&mut out, &haystack, &captures);
            }
            last_end = whole.end();
            let width = haystack.width(at);
            if at + width > whole.end() {
                at += width;
            } else if at + 1 > whole.end() {
                at += 1;
            } else {
                at = whole.end();
            }
        }
        out.extend_from_slice(haystack.slice(last_end, haystack.len()));
        out
    }

    fn group<'a>(haystack: &Haystack<'a>, captures: &Captures, index: usize) -> Option<&'a [u8]> {
        captures.get_group(index).map(|span| haystack.slice(span.start, span.end))
    }

    /// Go's `expand`: `$1`, `${1}`, `$name`, `${name}`, `$$`.
    fn expand(
        &self,
        out: &mut Vec<u8>,
        template: &[u8],
        haystack: &Haystack<'_>,
        captures: &Captures,
    ) {
        let mut rest = template;
        while let Some(dollar) = rest.iter().position(|&b| b == b'$') {
            out.extend_from_slice(rest.get(..dollar).unwrap_or_default());
            rest = rest.get(dollar + 1..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix(b"$") {
                out.push(b'$');
                rest = after;
                continue;
            }
            let Some((reference, after)) = reference(rest) else {
                out.push(b'$');
                continue;
            };
            rest = after;
            let group = match reference {
                Reference::Number(number) => Self::group(haystack, captures, number),
                Reference::Name(name) => self
                    .names
                    .iter()
                    .enumerate()
                    .filter(|(_, known)| known.as_bytes() == name)
                    .find_map(|(index, _)| Self::group(haystack, captures, index)),
            };
            out.extend_from_slice(group.unwrap_or_default());
        }
        out.extend_from_slice(rest);
    }

    fn replace(&self, text: &Str, template: &Str) -> Vec<u8> {
        let template = template.as_bytes();
        let groups = template.contains(&b'$');
        self.replace_all(
            text.as_bytes(),
            |out, haystack, captures| self.expand(out, template, haystack, captures),
            groups,
        )
    }

    fn replace_literal(&self, text: &Str, literal: &Str) -> Vec<u8> {
        self.replace_all(
            text.as_bytes(),
            |out, _, _| out.extend_from_slice(literal.as_bytes()),
            false,
        )
    }

    fn find(&self, text: &Str) -> Str {
        let haystack = Haystack::new(text.as_bytes());
        match self.find_at(&haystack, 0) {
            Some((start, end)) => haystack.slice(start, end).into(),
            None => Str::default(),
        }
    }

    fn all_strings(&self, text: &Str, limit: i64) -> List {
        let haystack = Haystack::new(text.as_bytes());
        let found = self.find_all(&haystack, limit);
        if found.is_empty() {
            return List::nil(&gotemplate::value::LIST_STRING);
        }
        List::strings(found.into_iter().map(|(start, end)| haystack.slice(start, end)))
    }

    /// Go's `Split`.
    fn split(&self, text: &Str, limit: i64) -> List {
        if limit == 0 {
            return List::nil(&gotemplate::value::LIST_STRING);
        }
        if !self.empty && text.is_empty() {
            return List::strings([""]);
        }
        let haystack = Haystack::new(text.as_bytes());
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut parts: Vec<&[u8]> = Vec::new();
        let (mut begin, mut end) = (0, 0);
        for (match_start, match_end) in self.find_all(&haystack, limit) {
            if parts.len() >= most - 1 {
                break;
            }
            end = match_start;
            if match_end != 0 {
                parts.push(haystack.slice(begin, end));
            }
            begin = match_end;
        }
        if end != haystack.len() {
            parts.push(haystack.slice(begin, haystack.len()));
        }
        List::strings(parts)
    }
}

enum Reference<'a> {
    Number(usize),
    Name(&'a [u8]),
}

/// Go's `extract`: the group that a template names after its `$`, and what follows.
fn reference(text: &[u8]) -> Option<(Reference<'_>, &[u8])> {
    let body = text.strip_prefix(b"{");
    let start = body.unwrap_or(text);
    let mut length = 0;
    for chunk in start.utf8_chunks() {
        let valid = chunk.valid();
        let name = valid.find(|c: char| !(c == '_' || is_letter_or_digit(c.into())));
        length += name.unwrap_or(valid.len());
        if name.is_some() || !chunk.invalid().is_empty() {
            break;
        }
    }
    if length == 0 {
        return None;
    }
    let (name, mut rest) = start.split_at_checked(length)?;
    if body.is_some() {
        rest = rest.strip_prefix(b"}")?;
    }
    let number = std::str::from_utf8(name)
        .ok()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .filter(|name| *name == "0" || !name.starts_with('0'))
        // Go gives up on a number when it has reached 100,000,000 with digits left.
        .filter(|name| name.len() <= 9)
        .and_then(|name| name.parse::<usize>().ok());
    Some((number.map_or(Reference::Name(name), Reference::Number), rest))
}

/// Go's `regexp.QuoteMeta`.
fn quote_meta(text: Str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text.as_bytes() {
        if br"\.+*?()|[]{}^$".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

type Compile = fn(&Cache, &Str) -> Result<Arc<Regex>, CallError>;

pub(super) fn register(functions: &mut FunctionMap) {
    let cache = Cache::default();
    // The two forms of each function differ in the text of the error only.
    let forms: [(Compile, [&'static str; 5]); 2] = [
        (
            Cache::must,
            [
                "regexFind",
                "regexFindAll",
                "regexReplaceAll",
                "regexReplaceAllLiteral",
                "regexSplit",
            ],
        ),
        (
            Cache::checked,
            [
                "mustRegexFind",
                "mustRegexFindAll",
                "mustRegexReplaceAll",
                "mustRegexReplaceAllLiteral",
                "mustRegexSplit",
            ],
        ),
    ];
    for (compile, [find, find_all, replace_all, replace_literal, split]) in forms {
        let own = || cache.clone();
        let cache = own();
        functions.insert(
            find,
            Function::new(move |pattern: Str, text: Str| {
                compile(&cache, &pattern).map(|regex| regex.find(&text))
            }),
        );
        let cache = own();
        functions.insert(
            find_all,
            Function::new(move |pattern: Str, text: Str, limit: i64| {
                compile(&cache, &pattern).map(|regex| regex.all_strings(&text, limit))
            }),
        );
        let cache = own();
        functions.insert(
            replace_all,
            Function::new(move |pattern: Str, text: Str, template: Str| {
                compile(&cache, &pattern).map(|regex| regex.replace(&text, &template))
            }),
        );
        let cache = own();
        functions.insert(
            replace_literal,
            Function::new(move |pattern: Str, text: Str, literal: Str| {
                compile(&cache, &pattern).map(|regex| regex.replace_literal(&text, &literal))
            }),
        );
        let cache = own();
        functions.insert(
            split,
            Function::new(move |pattern: Str, text: Str, limit: i64| {
                compile(&cache, &pattern).map(|regex| regex.split(&text, limit))
            }),
        );
    }
    let shared = cache.clone();
    functions.insert(
        "regexMatch",
        Function::new(move |pattern: Str, text: Str| {
            shared.compile(&pattern).is_ok_and(|regex| regex.is_match(text.as_bytes()))
        }),
    );
    functions.insert(
        "mustRegexMatch",
        Function::new(move |pattern: Str, text: Str| {
            cache.checked(&pattern).map(|regex| regex.is_match(text.as_bytes()))
        }),
    );
    functions.insert("regexQuoteMeta", Function::new(quote_meta));
}
