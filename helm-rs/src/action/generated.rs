//! Which leaves of a chart's manifests are generated: keys, passwords, times.
//!
//! The chart is rendered twice with other randomness and another clock; what differs is
//! generated. Everything else comes out the same, since randomness and clock are all that a
//! render takes from outside.

use std::collections::HashMap;

use goyaml::Value;

use super::template::{self, Error, Options, Rendering};
use crate::chart::{Chart, Warning};
pub use crate::diff::{LeafPath, Step};
use crate::render::{Engine, Host};

/// A place in an object that comes out differently each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedLeaf {
    /// The object.
    pub object: Object,
    /// The place in it. Empty when the whole object is generated.
    pub path: LeafPath,
}

/// Which object it is, as the first render has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The template that makes it.
    pub template: String,
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata.namespace`, often empty.
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
}

/// A rendering with its generated leaves, in the order of the manifests, hooks after the others.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The first render.
    pub rendering: Rendering,
    /// Where the second render differs.
    pub leaves: Vec<GeneratedLeaf>,
}

/// Renders a chart for each of two hosts, which should differ in seed and clock, and tells the
/// leaves that differ. The chart comes back with its dependencies processed.
///
/// # Errors
/// As [`template::template`].
pub fn generated_leaves(
    engine: &Engine,
    chart: &mut Chart,
    user_values: &goyaml::Map,
    options: &Options,
    hosts: [&mut Host; 2],
    warnings: &mut Vec<Warning>,
) -> Result<Generated, Error> {
    let [first, second] = hosts;
    // Processing dependencies a second time would import values twice.
    let mut again = chart.clone();
    let rendering = template::template(engine, chart, user_values, options, first, warnings)?;
    let other =
        template::template(engine, &mut again, user_values, options, second, &mut Vec::new())?;
    let leaves = compare(&documents(&rendering), &documents(&other));
    Ok(Generated { rendering, leaves })
}

type Document<'a> = (&'a str, &'a [u8]);

fn documents(rendering: &Rendering) -> Vec<Document<'_>> {
    let manifests = rendering.manifests.iter().map(|m| (m.name.as_str(), m.content.as_slice()));
    let hooks = rendering.hooks.iter().map(|h| (h.path.as_str(), h.manifest.as_slice()));
    manifests.chain(hooks).collect()
}

/// Pairs the documents by template and number within it: names may be generated themselves.
fn compare(first: &[Document<'_>], second: &[Document<'_>]) -> Vec<GeneratedLeaf> {
    let mut others: HashMap<&str, std::collections::VecDeque<&[u8]>> = HashMap::new();
    for (template, text) in second {
        others.entry(template).or_default().push_back(text);
    }
    let mut leaves = Vec::new();
    for (template, text) in first {
        let other = others.get_mut(template).and_then(std::collections::VecDeque::pop_front);
        if other == Some(text) {
            continue;
        }
        let read = |text: &[u8]| goyaml::from_yaml(text, &goyaml::Limits::default());
        // Sorting has read these texts before, so that reading them again does not fail.
        let one = read(text).unwrap_or_default();
        let object = describe(template, &one);
        let mut places = Vec::new();
        match other.map(read) {
            Some(Ok(two)) => differences(&one, &two, &mut Vec::new(), &mut places),
            _ => places.push(LeafPath::default()),
        }
        leaves
            .extend(places.into_iter().map(|path| GeneratedLeaf { object: object.clone(), path }));
    }
    leaves
}

fn describe(template: &str, value: &Value) -> Object {
    let text = |path: &[&str]| {
        value.at(path).and_then(Value::as_str).map(ToString::to_string).unwrap_or_default()
    };
    Object {
        template: template.to_owned(),
        api_version: text(&["apiVersion"]),
        kind: text(&["kind"]),
        namespace: text(&["metadata", "namespace"]),
        name: text(&["metadata", "name"]),
    }
}

fn differences(one: &Value, two: &Value, path: &mut Vec<Step>, places: &mut Vec<LeafPath>) {
    match (one, two) {
        (Value::Map(a), Value::Map(b)) => {
            for (key, value) in a {
                path.push(Step::Key(key.clone()));
                match b.get(key) {
                    Some(other) => differences(value, other, path, places),
                    None => places.push(LeafPath(path.clone())),
                }
                path.pop();
            }
            for key in b.keys().filter(|key| !a.contains_key(key)) {
                path.push(Step::Key(key.clone()));
                places.push(LeafPath(path.clone()));
                path.pop();
            }
        }
        (Value::Seq(a), Value::Seq(b)) if a.len() == b.len() => {
            for (index, (value, other)) in a.iter().zip(b).enumerate() {
                path.push(Step::Index(index));
                differences(value, other, path, places);
                path.pop();
            }
        }
        (a, b) if a == b => {}
        _ => places.push(LeafPath(path.clone())),
    }
}
