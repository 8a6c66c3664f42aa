//! A comparison for people, and as data.

use std::time::Duration;

use goyaml::{Map, Value};
use helm_rs::release::compare::{Comparison, FileDifference, ObjectChange, ValueDifference};
use similar::TextDiff;

use crate::changes::{change_lines, changes_value, mark, word};

/// After this long a text's difference need not be the shortest: hostile ones take for ever.
const MOST_TIME: Duration = Duration::from_secs(5);

/// What the two sides are called.
type Titles = (String, String);

/// As lines of text, in the form of `diff -u`, part by part.
pub(super) fn unified(titles: &Titles, comparison: &Comparison) -> String {
    let mut out = head(titles, comparison);
    let mut section = Section { out: &mut out, title: "" };
    section.title = "chart";
    for FileDifference { name, old, new } in &comparison.chart {
        section.text(name, old.as_deref(), new.as_deref());
    }
    if let Some(ValueDifference { old, new, .. }) = &comparison.chart_values {
        section.text("default values", Some(old), Some(new));
    }
    section.title = "values";
    if let Some(ValueDifference { old, new, .. }) = &comparison.values {
        section.text("user-supplied values", Some(old), Some(new));
    }
    for (title, changes) in [("manifest", &comparison.manifest), ("hooks", &comparison.hooks)] {
        section.title = title;
        for change in changes {
            section.text(&object_title(change), change.old.as_deref(), change.new.as_deref());
        }
    }
    section.title = "notes";
    if let Some((old, new)) = &comparison.notes {
        section.text("NOTES.txt", Some(old), Some(new));
    }
    out
}

fn head((old, new): &Titles, comparison: &Comparison) -> String {
    let mut out = format!("{old} -> {new}\n");
    if comparison.is_empty() {
        out.push_str("no differences\n");
    }
    if comparison.generated > 0 {
        out.push_str(&format!("{} generated leaves are not compared\n", comparison.generated));
    }
    out
}

struct Section<'a> {
    out: &'a mut String,
    title: &'static str,
}

impl Section<'_> {
    fn text(&mut self, name: &str, old: Option<&str>, new: Option<&str>) {
        let header = |side: Option<&str>| match side {
            Some(_) => format!("{}: {name}", self.title),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (header(old), header(new));
        let diff = TextDiff::configure()
            .timeout(MOST_TIME)
            .diff_lines(old.unwrap_or_default(), new.unwrap_or_default());
        let text = diff.unified_diff().context_radius(3).header(&before, &after).to_string();
        if text.is_empty() {
            // Order alone, of what YAML writes in its own order.
            self.out.push_str(&format!("--- {before}\n+++ {after}\n(only the order differs)\n"));
        } else {
            self.out.push_str(&text);
        }
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }
}

fn object_title(change: &ObjectChange) -> String {
    if change.source.is_empty() {
        change.identity.to_string()
    } else {
        format!("{} ({})", change.identity, change.source)
    }
}

/// As one line per leaf.
pub(super) fn leaves(titles: &Titles, comparison: &Comparison) -> String {
    let mut out = head(titles, comparison);
    if !comparison.chart.is_empty() || comparison.chart_values.is_some() {
        out.push_str("chart:\n");
    }
    for FileDifference { name, old, new } in &comparison.chart {
        out.push_str(&format!("  {} {name}\n", mark(old.is_some(), new.is_some())));
    }
    if let Some(difference) = &comparison.chart_values {
        out.push_str("  ~ default values\n");
        change_lines(&difference.changes, "    ", &mut out);
    }
    if let Some(difference) = &comparison.values {
        out.push_str("values:\n");
        change_lines(&difference.changes, "  ", &mut out);
    }
    for (title, changes) in [("manifest", &comparison.manifest), ("hooks", &comparison.hooks)] {
        if !changes.is_empty() {
            out.push_str(&format!("{title}:\n"));
        }
        for change in changes {
            let mark = mark(change.old.is_some(), change.new.is_some());
            out.push_str(&format!("  {mark} {}\n", object_title(change)));
            if mark == '~' {
                change_lines(&change.changes, "    ", &mut out);
            }
        }
    }
    if comparison.notes.is_some() {
        out.push_str("notes:\n  ~ NOTES.txt\n");
    }
    out
}

/// As data.
pub(super) fn structured((old, new): &Titles, comparison: &Comparison) -> Value {
    let text = |text: &str| Value::from(text);
    let files = comparison.chart.iter().map(|FileDifference { name, old, new }| {
        map([
            ("name", text(name)),
            ("change", text(word(old.is_some(), new.is_some()))),
            ("old", old.as_deref().map_or(Value::Null, text)),
            ("new", new.as_deref().map_or(Value::Null, text)),
        ])
    });
    let values = |difference: &Option<ValueDifference>| {
        changes_value(difference.as_ref().map_or(&[], |difference| &difference.changes))
    };
    let objects = |all: &[ObjectChange]| Value::Seq(all.iter().map(object_value).collect());
    let notes = comparison
        .notes
        .as_ref()
        .map_or(Value::Null, |(old, new)| map([("old", text(old)), ("new", text(new))]));
    map([
        ("old", text(old)),
        ("new", text(new)),
        (
            "chart",
            map([
                ("files", Value::Seq(files.collect())),
                ("values", values(&comparison.chart_values)),
            ]),
        ),
        ("values", values(&comparison.values)),
        ("manifest", objects(&comparison.manifest)),
        ("hooks", objects(&comparison.hooks)),
        ("notes", notes),
        ("generatedLeaves", Value::Int(i64::try_from(comparison.generated).unwrap_or(i64::MAX))),
    ])
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Map(fields.into_iter().collect::<Map>())
}

fn object_value(change: &ObjectChange) -> Value {
    let text = |text: &str| Value::from(text);
    let object = &change.identity;
    map([
        ("group", text(&object.group)),
        ("kind", text(&object.kind)),
        ("namespace", text(&object.namespace)),
        ("name", text(&object.name)),
        ("source", text(&change.source)),
        ("change", text(word(change.old.is_some(), change.new.is_some()))),
        ("leaves", changes_value(&change.changes)),
    ])
}
