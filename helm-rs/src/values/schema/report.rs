//! Failures in the words of santhosh-tekuri/jsonschema v6 (`output.go`, `kind/kind.go`), numbers
//! as `golang.org/x/text/message` prints them in English.

use std::borrow::Cow;
use std::fmt::Write as _;

use boon::{CompileError, ErrorKind, InstanceToken, ValidationError};
use serde_json::Value as Json;

use crate::gotext;
use crate::render::functions::regex::syntax_error;

/// All failures of a document, without the head line that Helm cuts off. `schema` is the schema's
/// own document, for the text of its patterns.
pub(super) fn validation(error: &ValidationError<'_, '_>, schema: &Json) -> String {
    let mut report = Report { text: String::new(), schema };
    report.push(error, 0);
    let head = "jsonschema validation failed with 'file:///values.schema.json#'\n";
    let text = report.text;
    format!("{}\n", text.strip_prefix(head).unwrap_or(&text))
}

/// Why a schema cannot be compiled.
pub(super) fn compilation(error: &CompileError) -> String {
    let q = |text: &String| gotext::quote(text);
    match error {
        CompileError::ParseUrlError { url, src } => {
            format!("error in parsing {}: {src}", q(url))
        }
        CompileError::LoadUrlError { url, src } => {
            format!("failing loading {}: {src}", q(url))
        }
        CompileError::UnsupportedUrlScheme { url } => {
            format!("no URLLoader registered for {}", q(url))
        }
        CompileError::InvalidMetaSchemaUrl { url, src } => {
            format!("invalid $schema in {}: {src}", q(url))
        }
        CompileError::UnsupportedDraft { url } => format!("draft {} is not supported", q(url)),
        CompileError::MetaSchemaCycle { url } => {
            format!("cycle in resolving $schema in {}", q(url))
        }
        CompileError::ValidationError { url, src } => {
            let text = format!("{} is not valid against metaschema: ", q(&with_fragment(url)));
            let mut report = Report { text, schema: &Json::Null };
            report.push(src, 0);
            report.text
        }
        CompileError::ParseIdError { loc } => format!("error in parsing id at {}", q(loc)),
        CompileError::ParseAnchorError { loc } => {
            format!("error in parsing anchor at {}", q(loc))
        }
        CompileError::DuplicateId { url, id, ptr1, ptr2 } => {
            format!("duplicate id {} in {} at {} and {}", q(id), q(url), q(ptr1), q(ptr2))
        }
        CompileError::DuplicateAnchor { anchor, url, ptr1, ptr2 } => {
            format!("duplicate anchor {} in {} at {} and {}", q(anchor), q(url), q(ptr1), q(ptr2))
        }
        CompileError::InvalidJsonPointer(url) => format!("invalid json-pointer {}", q(url)),
        CompileError::JsonPointerNotFound(url) => {
            format!("json-pointer in {} not found", q(url))
        }
        CompileError::AnchorNotFound { url, reference } => {
            format!("anchor in {} not found in schema {}", q(reference), q(url))
        }
        CompileError::UnsupportedVocabulary { url, vocabulary } => {
            format!("unsupported vocabulary {} in {}", q(vocabulary), q(url))
        }
        CompileError::InvalidRegex { url, regex, src } => {
            format!("invalid regex {} at {}: {src}", q(regex), q(url))
        }
        CompileError::Bug(src) => format!("unable to validate schema: {src}"),
    }
}

/// Go names the document with an empty fragment.
fn with_fragment(url: &str) -> String {
    if url.contains('#') { url.to_owned() } else { format!("{url}#") }
}

/// A report being written.
struct Report<'a> {
    text: String,
    schema: &'a Json,
}

/// The part of a schema in whose course failures were found: their `schema_url`s start with it.
struct Place<'a> {
    url: &'a str,
    /// Length of the instance location at which this part was applied.
    depth: usize,
}

impl Place<'_> {
    /// The parts of the schema's address that lead on to where a failure was found.
    fn steps_to<'e>(&self, error: &ValidationError<'e, '_>) -> Vec<&'e str> {
        let way = error.schema_url.strip_prefix(self.url).unwrap_or_default();
        way.split('/').skip(1).collect()
    }
}

/// A stretch of the way from a place to a failure, in parts of the address.
struct Way<'a> {
    cause: &'a ValidationError<'a, 'a>,
    from: usize,
    to: usize,
}

/// A keyword on the way through a schema.
enum Step<'a> {
    /// One schema of `allOf`, `anyOf` or `oneOf`.
    Alternative(&'a str),
    /// A keyword with a name or number behind it, or without; whether it goes down in the values.
    Into { named: bool, descends: bool },
}

impl<'a> Step<'a> {
    fn at(steps: &[&'a str], at: usize) -> Option<Self> {
        let step = *steps.get(at)?;
        let numbered = steps.get(at + 1).is_some_and(|next| next.parse::<usize>().is_ok());
        Some(match step {
            "allOf" | "anyOf" | "oneOf" => Self::Alternative(step),
            "properties" | "patternProperties" | "prefixItems" => {
                Self::Into { named: true, descends: true }
            }
            "items" if numbered => Self::Into { named: true, descends: true },
            "items"
            | "additionalProperties"
            | "additionalItems"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contains" => Self::Into { named: false, descends: true },
            "dependentSchemas" | "dependencies" => Self::Into { named: true, descends: false },
            "if" | "then" | "else" | "not" | "propertyNames" | "contentSchema" => {
                Self::Into { named: false, descends: false }
            }
            _ => return None,
        })
    }

    /// How many parts of the address this takes, and how many levels of the values.
    fn length(&self) -> (usize, usize) {
        match self {
            Self::Alternative(_) => (2, 0),
            Self::Into { named, descends } => (1 + usize::from(*named), usize::from(*descends)),
        }
    }
}

/// The Rust library also loses a group of failures when it is all that failed below a schema or
/// reference. Go loses it too, but not behind an alternative. Failures that share their way
/// through schema and values up to one point, with an alternative on it, can only come from such a
/// group at that point. Returns how many parts of their addresses lead there.
fn lost_group(error: &ValidationError<'_, '_>, place: &Place<'_>) -> Option<usize> {
    if !matches!(error.kind, ErrorKind::Schema { .. } | ErrorKind::Reference { .. }) {
        return None;
    }
    let (first, others) = error.causes.split_first()?;
    if others.is_empty() {
        return None;
    }
    let steps = place.steps_to(first);
    let others: Vec<_> = others.iter().map(|other| (place.steps_to(other), other)).collect();
    let tokens = |error: &ValidationError<'_, '_>, depth: usize| {
        error.instance_location.tokens.get(..depth).map(pointer)
    };
    let (mut at, mut depth, mut behind_alternative) = (0, place.depth, false);
    while let Some(step) = Step::at(&steps, at) {
        let (length, descent) = step.length();
        let (end, below) = (at + length, depth + descent);
        let shared = others.iter().all(|(other_steps, other)| {
            steps.get(..end).is_some_and(|steps| other_steps.starts_with(steps))
                && tokens(other, below) == tokens(first, below)
        });
        if !shared {
            break;
        }
        behind_alternative |= matches!(step, Step::Alternative(_));
        (at, depth) = (end, below);
    }
    behind_alternative.then_some(at)
}

impl Report<'_> {
    /// `ValidationError.display`
    fn push(&mut self, error: &ValidationError<'_, '_>, indent: usize) {
        let mut indent = indent;
        let url = match &error.kind {
            ErrorKind::Reference { url, .. } => url,
            _ => error.schema_url,
        };
        let place = Place { url, depth: error.instance_location.tokens.len() };
        let group = lost_group(error, &place);
        let is_reference = matches!(error.kind, ErrorKind::Reference { .. });
        let skipped = is_reference && (error.causes.len() == 1 || group.is_some());
        if !skipped {
            if let ErrorKind::Schema { url } = &error.kind {
                let url = quote(&with_fragment(url));
                let _ = write!(self.text, "jsonschema validation failed with {url}");
            } else {
                let text = match &error.kind {
                    ErrorKind::Pattern { got, want } => {
                        let original = self.pattern(error.schema_url);
                        let want = original.as_deref().unwrap_or(want);
                        format!("{} does not match pattern {}", quote(got), quote(want))
                    }
                    other => kind(other),
                };
                self.push_line(&error.instance_location.tokens, &text, indent);
            }
            indent += 1;
        }
        if let Some(steps) = group {
            self.push_group(error, &place, steps, indent);
            return;
        }
        // The causes of these lie in the alternatives, whose own keyword was just printed.
        let skip = match error.kind {
            ErrorKind::AllOf | ErrorKind::AnyOf | ErrorKind::OneOf(_) => 2,
            _ => 0,
        };
        for cause in &error.causes {
            let way = Way { cause, from: skip, to: usize::MAX };
            let (indent, _) = self.push_wrappers(&way, &place, indent);
            self.push(cause, indent);
        }
    }

    /// Prints what [`lost_group`] found: the way to the alternative, the group, its failures.
    fn push_group(
        &mut self,
        error: &ValidationError<'_, '_>,
        place: &Place<'_>,
        steps: usize,
        indent: usize,
    ) {
        let Some(first) = error.causes.first() else { return };
        let way = Way { cause: first, from: 0, to: steps };
        let (indent, depth) = self.push_wrappers(&way, place, indent);
        let tokens = &first.instance_location.tokens;
        self.push_line(tokens.get(..depth).unwrap_or(tokens), "validation failed", indent);
        let place = Place { url: place.url, depth };
        for cause in &error.causes {
            let way = Way { cause, from: steps, to: usize::MAX };
            let (indent, _) = self.push_wrappers(&way, &place, indent + 1);
            self.push(cause, indent);
        }
    }

    /// The Rust library leaves `allOf` and its kin out of the report when just one alternative
    /// failed, the Go library never does. Which ones they were shows in the way from the place
    /// where validation was to the place that failed.
    ///
    /// Returns the indentation behind them and the depth reached in the values.
    fn push_wrappers(&mut self, way: &Way<'_>, place: &Place<'_>, indent: usize) -> (usize, usize) {
        let (mut at, mut depth, mut indent) = (way.from, place.depth, indent);
        let steps = place.steps_to(way.cause);
        let end = way.to.min(steps.len());
        while at < end {
            let Some(step) = Step::at(&steps, at) else { break };
            if let Step::Alternative(keyword) = step {
                let tokens = &way.cause.instance_location.tokens;
                let tokens = tokens.get(..depth).unwrap_or(tokens);
                let none = if keyword == "oneOf" { ", none matched" } else { "" };
                self.push_line(tokens, &format!("'{keyword}' failed{none}"), indent);
                indent += 1;
            }
            let (length, instance) = step.length();
            at += length;
            depth += instance;
        }
        (indent, depth)
    }

    fn push_line(&mut self, location: &[InstanceToken<'_>], text: &str, indent: usize) {
        if indent > 0 {
            self.text.push('\n');
            self.text.push_str(&"  ".repeat(indent - 1));
            self.text.push_str("- ");
        }
        let at = quote(&pointer(location));
        let _ = write!(self.text, "at {at}: {text}");
    }

    /// The pattern at a place of the schema as it is written there; the library rewrites some.
    fn pattern(&self, url: &str) -> Option<String> {
        let way = url.strip_prefix("file:///values.schema.json#")?;
        let way = super::loader::percent_decode(way);
        let pattern = self.schema.pointer(&format!("{way}/pattern"))?.as_str()?;
        Some(pattern.to_owned())
    }
}

fn kind(kind: &ErrorKind<'_, '_>) -> String {
    match kind {
        ErrorKind::Group | ErrorKind::Reference { .. } | ErrorKind::Schema { .. } => {
            "validation failed".to_owned()
        }
        ErrorKind::ContentSchema => "'contentSchema' failed".to_owned(),
        ErrorKind::PropertyName { prop } => format!("invalid propertyName {}", quote(prop)),
        ErrorKind::RefCycle { url, kw_loc1, kw_loc2 } => format!(
            "both {kw_loc1} and {kw_loc2} resolve to {} causing reference cycle",
            gotext::quote(url)
        ),
        ErrorKind::FalseSchema => "false schema".to_owned(),
        ErrorKind::Type { got, want } => {
            let want: Vec<String> = want.iter().map(|t| t.to_string()).collect();
            format!("got {got}, want {}", want.join(" or "))
        }
        ErrorKind::Enum { want } => enumeration(want),
        ErrorKind::Const { want: Json::Array(_) | Json::Object(_) } => "'const' failed".to_owned(),
        ErrorKind::Const { want } => format!("value must be {}", display(want)),
        ErrorKind::Format { got, want, err } => {
            // "regex" cannot be given a check of our own, so its text is replaced here.
            let go_text = got.as_str().filter(|_| *want == "regex");
            let go_text = go_text.and_then(|pattern| syntax_error(pattern.as_bytes()));
            let reason = go_text.unwrap_or_else(|| err.to_string());
            format!("{} is not valid {want}: {reason}", display(got))
        }
        ErrorKind::Minimum { got, want } => bounds("minimum", got, want),
        ErrorKind::Maximum { got, want } => bounds("maximum", got, want),
        ErrorKind::ExclusiveMinimum { got, want } => bounds("exclusiveMinimum", got, want),
        ErrorKind::ExclusiveMaximum { got, want } => bounds("exclusiveMaximum", got, want),
        ErrorKind::MultipleOf { got, want } => bounds("multipleOf", got, want),
        ErrorKind::Not => "'not' failed".to_owned(),
        ErrorKind::AllOf => "'allOf' failed".to_owned(),
        ErrorKind::AnyOf => "'anyOf' failed".to_owned(),
        ErrorKind::OneOf(None) => "'oneOf' failed, none matched".to_owned(),
        ErrorKind::OneOf(Some((first, second))) => {
            let (first, second) = (count(*first), count(*second));
            format!("'oneOf' failed, subschemas {first}, {second} matched")
        }
        other => object_kind(other).unwrap_or_else(|| other.to_string()),
    }
}

/// The kinds that concern sizes, keys and text.
fn object_kind(kind: &ErrorKind<'_, '_>) -> Option<String> {
    Some(match kind {
        ErrorKind::MinProperties { got, want } => sizes("minProperties", *got, *want),
        ErrorKind::MaxProperties { got, want } => sizes("maxProperties", *got, *want),
        ErrorKind::MinItems { got, want } => sizes("minItems", *got, *want),
        ErrorKind::MaxItems { got, want } => sizes("maxItems", *got, *want),
        ErrorKind::MinLength { got, want } => sizes("minLength", *got, *want),
        ErrorKind::MaxLength { got, want } => sizes("maxLength", *got, *want),
        ErrorKind::AdditionalProperties { got } => {
            format!("additional properties {} not allowed", quoted(got.iter().map(Cow::as_ref)))
        }
        ErrorKind::Required { want } => {
            let noun = if want.len() == 1 { "property" } else { "properties" };
            format!("missing {noun} {}", quoted(want.iter().copied()))
        }
        ErrorKind::Dependency { prop, missing }
        | ErrorKind::DependentRequired { prop, missing } => format!(
            "properties {} required, if {} exists",
            quoted(missing.iter().copied()),
            quote(prop)
        ),
        ErrorKind::AdditionalItems { got } => {
            format!("last {} additionalItem(s) not allowed", count(*got))
        }
        ErrorKind::UniqueItems { got: [first, second] } => {
            format!("items at {} and {} are equal", count(*first), count(*second))
        }
        ErrorKind::Contains => "no items match contains schema".to_owned(),
        ErrorKind::MinContains { got, want } if got.is_empty() => format!(
            "min {} items required to match contains schema, but none matched",
            count(*want)
        ),
        ErrorKind::MinContains { got, want } => contained("min", got, *want),
        ErrorKind::MaxContains { got, want } => contained("max", got, *want),
        ErrorKind::ContentEncoding { want, err } => {
            format!("value is not {} encoded: {err}", quote(want))
        }
        ErrorKind::ContentMediaType { want, err, .. } => {
            format!("value if not of mediatype {}: {err}", quote(want))
        }
        _ => return None,
    })
}

fn enumeration(want: &[Json]) -> String {
    if want.iter().any(|item| item.is_array() || item.is_object()) {
        return "'enum' failed".to_owned();
    }
    let shown: Vec<String> = want.iter().map(display).collect();
    let one_of = if shown.len() == 1 { "" } else { "one of " };
    format!("value must be {one_of}{}", shown.join(", "))
}

fn bounds(keyword: &str, got: &serde_json::Number, want: &serde_json::Number) -> String {
    format!("{keyword}: got {}, want {}", number(got), number(want))
}

fn sizes(keyword: &str, got: usize, want: usize) -> String {
    format!("{keyword}: got {}, want {}", count(got), count(want))
}

fn contained(bound: &str, got: &[usize], want: usize) -> String {
    let places: Vec<String> = got.iter().map(usize::to_string).collect();
    format!(
        "{bound} {} items required to match contains schema, but matched {} items at {}",
        count(want),
        count(got.len()),
        places.join(" ")
    )
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(quote).collect::<Vec<_>>().join(", ")
}

/// `quote` of `kind.go`: Go's quotes turned into single ones.
fn quote(text: &str) -> String {
    let quoted = gotext::quote(text).replace("\\\"", "\"").replace('\'', "\\'");
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    format!("'{}'", inner.unwrap_or(&quoted))
}

/// `display` of `kind.go`
fn display(value: &Json) -> String {
    match value {
        Json::String(text) => quote(text),
        Json::Array(_) | Json::Object(_) => "value".to_owned(),
        Json::Null => "<nil>".to_owned(),
        value => value.to_string(),
    }
}

fn pointer(location: &[InstanceToken<'_>]) -> String {
    let mut text = String::new();
    for token in location {
        text.push('/');
        match token {
            InstanceToken::Prop(name) => {
                text.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            InstanceToken::Item(index) => text.push_str(&index.to_string()),
        }
    }
    text
}

/// `%d` in English: digits in groups of three.
fn count(number: usize) -> String {
    group(&number.to_string())
}

/// `%v` of a float in English: grouped, or as a power of ten where Go would print an exponent.
fn number(number: &serde_json::Number) -> String {
    let text = gotext::float64(number.as_f64().unwrap_or_default());
    let Some((mantissa, exponent)) = text.split_once('e') else {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text.as_str()),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) => (whole, format!(".{fraction}")),
            None => (digits, String::new()),
        };
        return format!("{sign}{}{fraction}", group(whole));
    };
    let raised: String = exponent
        .chars()
        .filter_map(|c| match c {
            '-' => Some('⁻'),
            '0' => Some('⁰'),
            '1' => Some('¹'),
            '2' => Some('²'),
            '3' => Some('³'),
            '4' => Some('⁴'),
            '5' => Some('⁵'),
            '6' => Some('⁶'),
            '7' => Some('⁷'),
            '8' => Some('⁸'),
            '9' => Some('⁹'),
            _ => None,
        })
        .collect();
    format!("{mantissa}×10{raised}")
}

fn group(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
