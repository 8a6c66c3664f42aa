//! Two revisions, or a revision and a rendering, held against each other: chart, values, manifest,
//! hooks and notes, each on its own.

use std::collections::BTreeMap;

use bstr::ByteSlice;
use goyaml::{Map, Value};

use super::chart::ChartError;
use super::record::Record;
use super::redact::{self, HIDDEN, Sensitive, Words};
use crate::action::generated::GeneratedLeaf;
use crate::action::template::Rendering;
use crate::chart::{Chart, File};
use crate::diff::{
    Change, Identity, Lists, ManifestObject, compare as compare_values, compare_objects,
    read_objects,
};
use crate::render::metadata_yaml;

/// One of the two things that are compared.
#[derive(Clone, Debug)]
pub struct Side {
    files: Vec<File>,
    chart_values: Value,
    values: Value,
    objects: Vec<ManifestObject>,
    hooks: Vec<ManifestObject>,
    notes: String,
    generated: Vec<GeneratedLeaf>,
}

/// Why a side cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SideError {
    /// The record's chart or another field does not read.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The chart's metadata cannot be written.
    #[error("Chart.yaml")]
    Metadata(#[from] goyaml::Error),
}

impl Side {
    /// What a record holds. A record without a chart has no files.
    ///
    /// # Errors
    /// When a part of the record does not read.
    pub fn of_record(record: &Record) -> Result<Self, SideError> {
        let field = |error| SideError::Chart(ChartError::Field(error));
        let chart = match record.chart() {
            Ok(chart) => Some(chart),
            Err(ChartError::Missing) => None,
            Err(error) => return Err(error.into()),
        };
        let hooks: Vec<u8> = record
            .hooks()
            .map_err(field)?
            .iter()
            .flat_map(|hook| document(&hook.path, hook.manifest.as_bytes()))
            .collect();
        Ok(Self {
            files: chart.as_ref().map(files).transpose()?.unwrap_or_default(),
            chart_values: chart_values(chart.as_ref()),
            values: Value::Map(record.user_values().map_err(field)?.unwrap_or_default()),
            objects: read_objects(record.manifest().map_err(field)?.as_bytes()),
            hooks: read_objects(&hooks),
            notes: record.info().map_err(field)?.notes,
            generated: Vec::new(),
        })
    }

    /// The credentials among the user's values and the chart's.
    pub fn sensitive(&self) -> Sensitive {
        Sensitive::of(self.values.as_map().into_iter().chain(self.chart_values.as_map()))
    }

    /// What a chart renders to with user values. Generated leaves are not compared.
    ///
    /// # Errors
    /// When the chart's metadata cannot be written as YAML.
    pub fn of_rendering(
        chart: &Chart,
        values: &Map,
        rendering: &Rendering,
        generated: Vec<GeneratedLeaf>,
    ) -> Result<Self, SideError> {
        let hooks: Vec<u8> =
            rendering.hooks.iter().flat_map(|hook| document(&hook.path, &hook.manifest)).collect();
        Ok(Self {
            files: files(chart)?,
            chart_values: chart_values(Some(chart)),
            values: Value::Map(values.clone()),
            objects: read_objects(rendering.manifest.to_str_lossy().as_bytes()),
            hooks: read_objects(&hooks),
            notes: rendering.notes.to_str_lossy().into_owned(),
            generated,
        })
    }
}

fn document(path: &str, manifest: &[u8]) -> Vec<u8> {
    [b"---\n# Source: ", path.as_bytes(), b"\n", manifest, b"\n"].concat()
}

fn chart_values(chart: Option<&Chart>) -> Value {
    Value::Map(chart.and_then(|chart| chart.values.clone()).unwrap_or_default())
}

/// A chart's own files, as far as records hold them too.
fn files(chart: &Chart) -> Result<Vec<File>, SideError> {
    let metadata = metadata_yaml(chart.metadata.clone())?;
    let mut files =
        vec![File { name: "Chart.yaml".to_owned(), data: metadata.into_bytes().into() }];
    if let Some(schema) = &chart.schema {
        files.push(File { name: "values.schema.json".to_owned(), data: schema.clone() });
    }
    files.extend(chart.templates.iter().chain(&chart.files).cloned());
    Ok(files)
}

/// What two sides do not have alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Files of the chart, by name.
    pub chart: Vec<FileDifference>,
    /// The chart's default values.
    pub chart_values: Option<ValueDifference>,
    /// The user-supplied values.
    pub values: Option<ValueDifference>,
    /// Objects of the manifest.
    pub manifest: Vec<ObjectChange>,
    /// Hooks.
    pub hooks: Vec<ObjectChange>,
    /// The notes, old and new.
    pub notes: Option<(String, String)>,
    /// Generated leaves that were left out.
    pub generated: usize,
}

/// A file that differs. Bytes that are no UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDifference {
    /// The file's name in the chart.
    pub name: String,
    /// The old text, when there is one.
    pub old: Option<String>,
    /// The new text, when there is one.
    pub new: Option<String>,
}

/// Structured data that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueDifference {
    /// Leaf by leaf.
    pub changes: Vec<Change>,
    /// The old data as YAML.
    pub old: String,
    /// The new data as YAML.
    pub new: String,
}

/// An object that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectChange {
    /// Which one.
    pub identity: Identity,
    /// The template that makes it; empty when nothing says so.
    pub source: String,
    /// Leaf by leaf; one change without path for an object that one side alone has.
    pub changes: Vec<Change>,
    /// The old object as YAML, when there is one.
    pub old: Option<String>,
    /// The new object as YAML, when there is one.
    pub new: Option<String>,
}

impl Comparison {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        let Self { chart, chart_values, values, manifest, hooks, notes, generated: _ } = self;
        chart.is_empty()
            && chart_values.is_none()
            && values.is_none()
            && manifest.is_empty()
            && hooks.is_empty()
            && notes.is_none()
    }
}

/// Compares two sides. Unless `show_secrets`, what may be a credential is hidden as [`redact`]
/// hides it; that it changed is still told.
pub fn compare(old: &Side, new: &Side, show_secrets: bool) -> Comparison {
    let mut generated = 0;
    let mut objects = |a: &[ManifestObject], b: &[ManifestObject]| {
        let (changes, left_out) = object_changes((old, a), (new, b), show_secrets);
        generated += left_out;
        changes
    };
    let (manifest, hooks) = (objects(&old.objects, &new.objects), objects(&old.hooks, &new.hooks));
    let notes = (old.notes != new.notes).then(|| {
        if show_secrets {
            return (old.notes.clone(), new.notes.clone());
        }
        // Words of either side: what one no longer has was a credential.
        let values = [old, new].into_iter().flat_map(|side| [&side.values, &side.chart_values]);
        let objects =
            [old, new].into_iter().flat_map(|side| side.objects.iter().chain(&side.hooks));
        let words =
            Words::of(values.filter_map(Value::as_map), objects.map(|object| &object.value));
        let (before, after) = (words.notes(&old.notes), words.notes(&new.notes));
        let is_hidden = before == after;
        // Told apart without being shown.
        let mark = |text: String, mark: &str| {
            if is_hidden { text.replacen(HIDDEN, &format!("{HIDDEN} ({mark})"), 1) } else { text }
        };
        (mark(before, "before"), mark(after, "after"))
    });
    Comparison {
        chart: file_differences(&old.files, &new.files, show_secrets),
        chart_values: value_difference(&old.chart_values, &new.chart_values, show_secrets),
        values: value_difference(&old.values, &new.values, show_secrets),
        manifest,
        hooks,
        notes,
        generated,
    }
}

fn file_differences(old: &[File], new: &[File], show_secrets: bool) -> Vec<FileDifference> {
    let by_name = |files: &[File]| -> BTreeMap<String, File> {
        files.iter().map(|file| (file.name.clone(), file.clone())).collect()
    };
    let (old, new) = (by_name(old), by_name(new));
    let text = |file: Option<&File>, mark: &str| {
        file.map(|file| {
            let text = file.data.to_str_lossy().into_owned();
            match redact::text(&text) {
                _ if show_secrets => text,
                // Told apart without being shown.
                hidden if hidden == HIDDEN => format!("{HIDDEN} ({mark})\n"),
                shown => shown,
            }
        })
    };
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| FileDifference {
            name: name.clone(),
            old: text(old.get(name), "before"),
            new: text(new.get(name), "after"),
        })
        .collect()
}

fn value_difference(old: &Value, new: &Value, show_secrets: bool) -> Option<ValueDifference> {
    let mut changes = compare_values(old, new, Lists::ByKey);
    if changes.is_empty() {
        return None;
    }
    let (mut old, mut new) = (old.clone(), new.clone());
    if !show_secrets {
        hide(Some(&mut old), Some(&mut new), &mut changes, |value| {
            if let Value::Map(map) = value {
                redact::values(map);
            }
        });
    }
    Some(ValueDifference { changes, old: yaml(&old), new: yaml(&new) })
}

fn yaml(value: &Value) -> String {
    match value {
        // An unreadable document stays the text that it is.
        Value::String(text) => text.to_str_lossy().into_owned(),
        Value::Map(map) if map.is_empty() => String::new(),
        value => goyaml::to_yaml(value).unwrap_or_else(|error| format!("# {error}\n")),
    }
}

fn object_changes(
    (old_side, old): (&Side, &[ManifestObject]),
    (new_side, new): (&Side, &[ManifestObject]),
    show_secrets: bool,
) -> (Vec<ObjectChange>, usize) {
    // Generated leaves are told by index.
    let has_generated = !(old_side.generated.is_empty() && new_side.generated.is_empty());
    let lists = if has_generated { Lists::ByIndex } else { Lists::ByKey };
    let mut left_out = 0;
    let mut all = Vec::new();
    for difference in compare_objects(old, new, lists) {
        let mut changes = difference.changes.clone();
        if let (Some(a), Some(b)) = (difference.old, difference.new) {
            let before = changes.len();
            changes.retain(|change| {
                !is_generated(&old_side.generated, a, change)
                    && !is_generated(&new_side.generated, b, change)
            });
            left_out += before - changes.len();
            if changes.is_empty() {
                continue;
            }
        }
        let mut a = difference.old.map(|object| object.value.clone());
        let mut b = difference.new.map(|object| object.value.clone());
        if !show_secrets {
            hide(a.as_mut(), b.as_mut(), &mut changes, redact::object);
        }
        let source = difference.new.or(difference.old).map(|object| object.source.clone());
        all.push(ObjectChange {
            identity: difference.identity(),
            source: source.unwrap_or_default(),
            changes,
            old: a.as_ref().map(yaml),
            new: b.as_ref().map(yaml),
        });
    }
    (all, left_out)
}

fn is_generated(leaves: &[GeneratedLeaf], object: &ManifestObject, change: &Change) -> bool {
    let own = &object.identity;
    leaves.iter().any(|leaf| {
        let other = &leaf.object;
        other.kind == own.kind
            && other.name == own.name
            && other.namespace == own.namespace
            && change.path.is_within(&leaf.path)
    })
}

/// Hides credentials on both sides and in the changes. Where two different values are hidden
/// alike, they are told apart without being shown.
fn hide(
    mut old: Option<&mut Value>,
    mut new: Option<&mut Value>,
    changes: &mut [Change],
    hide: impl Fn(&mut Value),
) {
    if let Some(old) = old.as_deref_mut() {
        hide(old);
    }
    if let Some(new) = new.as_deref_mut() {
        hide(new);
    }
    for change in changes {
        if matches!(change.path.0.last(), Some(crate::diff::Step::Order)) {
            continue;
        }
        let path = &change.path;
        let hidden = |side: Option<&Value>, value: &Option<Value>| {
            // What cannot be found again was hidden with its surroundings.
            let found = side.and_then(|side| path.find(side)).cloned();
            value.is_some().then(|| found.unwrap_or_else(|| Value::from(HIDDEN)))
        };
        let before = hidden(old.as_deref(), &change.old);
        let after = hidden(new.as_deref(), &change.new);
        let are_alike = before.is_some() && before == after;
        (change.old, change.new) = if are_alike {
            let mark = |side: Option<&mut Value>, mark: &str| {
                let value = Value::from(format!("{HIDDEN} ({mark})"));
                if let Some(place) = side.and_then(|side| path.find_mut(side)) {
                    place.clone_from(&value);
                }
                Some(value)
            };
            (mark(old.as_deref_mut(), "before"), mark(new.as_deref_mut(), "after"))
        } else {
            (before, after)
        };
    }
}
