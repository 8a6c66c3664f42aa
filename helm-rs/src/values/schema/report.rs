//! Failures in the words of santhosh-tekuri/jsonschema v6 (`output.go`, `kind/kind.go`), numbers
//! as `golang.org/x/text/message` prints them in English.

use std::borrow::Cow;
use std::fmt::Write as _;

use boon::{CompileError, ErrorKind, InstanceLocation, InstanceToken, ValidationError};
use serde_json::Value as Json;

use crate::gotext;

/// All failures of a document, without the head line that Helm cuts off.
pub(super) fn validation(error: &ValidationError<'_, '_>) -> String {
    let mut text = String::new();
    push_error(&mut text, error, 0);
    let head = "jsonschema validation failed with 'file:///values.schema.json#'\n";
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
            let mut text = format!("{} is not valid against metaschema: ", q(&with_fragment(url)));
            push_error(&mut text, src, 0);
            text
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
        _ => error.to_string(),
    }
}

/// Go names the document with an empty fragment.
fn with_fragment(url: &str) -> String {
    if url.contains('#') { url.to_owned() } else { format!("{url}#") }
}

/// `ValidationError.display`
fn push_error(text: &mut String, error: &ValidationError<'_, '_>, indent: usize) {
    let mut indent = indent;
    let skipped = error.causes.len() == 1 && matches!(error.kind, ErrorKind::Reference { .. });
    if !skipped {
        if indent > 0 {
            text.push('\n');
            text.push_str(&"  ".repeat(indent - 1));
            text.push_str("- ");
        }
        indent += 1;
        if let ErrorKind::Schema { url } = &error.kind {
            let url = quote(&with_fragment(url));
            let _ = write!(text, "jsonschema validation failed with {url}");
        } else {
            let at = quote(&pointer(&error.instance_location));
            let _ = write!(text, "at {at}: {}", kind(&error.kind));
        }
    }
    for cause in &error.causes {
        push_error(text, cause, indent);
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
            format!("{} is not valid {want}: {err}", display(got))
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
        ErrorKind::Pattern { got, want } => {
            format!("{} does not match pattern {}", quote(got), quote(want))
        }
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

fn pointer(location: &InstanceLocation<'_>) -> String {
    let mut text = String::new();
    for token in &location.tokens {
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
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
