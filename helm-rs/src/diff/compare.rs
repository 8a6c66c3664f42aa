//! Comparing two values.

use std::collections::BTreeMap;

use goyaml::Value;

use super::keys::{ItemKey, item_keys};
use super::path::{LeafPath, Step};

/// One place where two values differ.
///
/// A mapping or sequence that only one side has is one change, with everything in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where. Empty when the two values differ as a whole.
    pub path: LeafPath,
    /// What the old value has there; none when it has nothing.
    pub old: Option<Value>,
    /// What the new value has there; none when it has nothing.
    pub new: Option<Value>,
}

/// How lists are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lists {
    /// By merge key where Kubernetes has one and the items have it, else by index.
    #[default]
    ByKey,
    /// By index.
    ByIndex,
}

/// Where two values differ: in the order of keys, lists in the order of the old items, then of
/// the new ones.
///
/// Numbers are equal when they are the same number, whatever their type; an empty mapping and a
/// missing one are not.
///
/// ```
/// use goyaml::Limits;
/// use helm_rs::diff::{Lists, compare};
///
/// let read = |yaml: &str| goyaml::from_yaml(yaml.as_bytes(), &Limits::default()).unwrap();
/// let old = read("containers: [{name: a, image: x:1}, {name: b}]");
/// let new = read("containers: [{name: sidecar}, {name: a, image: x:2}, {name: b}]");
/// let places: Vec<String> =
///     compare(&old, &new, Lists::ByKey).iter().map(|change| change.path.to_string()).collect();
/// assert_eq!(places, ["containers[name=a].image", "containers[name=sidecar]"]);
/// ```
pub fn compare(old: &Value, new: &Value, lists: Lists) -> Vec<Change> {
    let mut comparison = Comparison { lists, path: Vec::new(), changes: Vec::new() };
    comparison.values(old, new);
    comparison.changes
}

struct Comparison {
    lists: Lists,
    path: Vec<Step>,
    changes: Vec<Change>,
}

impl Comparison {
    fn push(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let path = LeafPath(self.path.clone());
        self.changes.push(Change { path, old: old.cloned(), new: new.cloned() });
    }

    /// The recursion is as deep as the values, which the readers bound.
    fn values(&mut self, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Map(a), Value::Map(b)) => {
                for (key, value) in a {
                    self.step(Step::Key(key.clone()), Some(value), b.get(key));
                }
                for (key, value) in b {
                    if !a.contains_key(key) {
                        self.step(Step::Key(key.clone()), None, Some(value));
                    }
                }
            }
            (Value::Seq(a), Value::Seq(b)) => self.sequences(a, b),
            (a, b) if same_scalar(a, b) => {}
            (a, b) => self.push(Some(a), Some(b)),
        }
    }

    fn step(&mut self, step: Step, old: Option<&Value>, new: Option<&Value>) {
        self.path.push(step);
        match (old, new) {
            (Some(old), Some(new)) => self.values(old, new),
            (old, new) => self.push(old, new),
        }
        self.path.pop();
    }

    fn sequences(&mut self, old: &[Value], new: &[Value]) {
        let keys = match (self.lists, self.path.last()) {
            (Lists::ByKey, Some(Step::Key(field))) => item_keys(field.as_ref(), old, new),
            _ => None,
        };
        match keys {
            Some((old_keys, new_keys)) => self.keyed((old, &old_keys), (new, &new_keys)),
            None => {
                for index in 0..old.len().max(new.len()) {
                    self.step(Step::Index(index), old.get(index), new.get(index));
                }
            }
        }
    }

    fn keyed(
        &mut self,
        (old, old_keys): (&[Value], &[ItemKey]),
        (new, new_keys): (&[Value], &[ItemKey]),
    ) {
        let before: BTreeMap<&ItemKey, &Value> = old_keys.iter().zip(old).collect();
        let after: BTreeMap<&ItemKey, &Value> = new_keys.iter().zip(new).collect();
        for (key, value) in old_keys.iter().zip(old) {
            self.step(Step::Item(key.clone()), Some(value), after.get(key).copied());
        }
        for (key, value) in new_keys.iter().zip(new) {
            if !before.contains_key(key) {
                self.step(Step::Item(key.clone()), None, Some(value));
            }
        }
        let kept_old = old_keys.iter().filter(|key| after.contains_key(key));
        let kept_new = new_keys.iter().filter(|key| before.contains_key(key));
        if !kept_old.eq(kept_new) {
            self.path.push(Step::Order);
            self.push(Some(&titles(old_keys)), Some(&titles(new_keys)));
            self.path.pop();
        }
    }
}

/// The keys of a list's items, as texts.
fn titles(keys: &[ItemKey]) -> Value {
    let title = |key: &ItemKey| {
        let texts = key.iter().map(|(_, text)| text).filter(|text| !text.is_empty());
        Value::String(bstr::join("/", texts).into())
    };
    Value::Seq(keys.iter().map(title).collect())
}

fn same_scalar(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (a, b) => match (a.as_f64(), b.as_f64()) {
            // NaN is written as NaN on both sides.
            (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => a == b,
        },
    }
}

#[cfg(test)]
mod tests {
    use goyaml::{Limits, Value};

    use super::{Lists, compare};

    fn read(yaml: &str) -> Value {
        goyaml::from_yaml_exact(yaml.as_bytes(), &Limits::default()).unwrap()
    }

    fn lines(old: &str, new: &str, lists: Lists) -> Vec<String> {
        let text = |value: &Option<Value>| {
            value.as_ref().map_or("-".into(), |value| goyaml::json::to_json(value).unwrap())
        };
        let (old, new) = (read(old), read(new));
        let changes = compare(&old, &new, lists);
        for change in &changes {
            if !change.path.to_string().ends_with("[order]") {
                assert_eq!(change.path.find(&old), change.old.as_ref());
                assert_eq!(change.path.find(&new), change.new.as_ref());
            }
        }
        changes
            .iter()
            .map(|change| format!("{} {} {}", change.path, text(&change.old), text(&change.new)))
            .collect()
    }

    #[test]
    fn maps_scalars_and_numbers() {
        let old = "a: 1\nb: {c: old, d: [1, 2]}\ne: {}\nk: 1.0";
        let new = "a: 1.0\nb: {c: new, d: [1]}\nf: {g: 1}\nk: 1";
        assert_eq!(
            lines(old, new, Lists::ByKey),
            [r#"b.c "old" "new""#, "b.d[1] 2 -", "e {} -", r#"f - {"g":1}"#]
        );
        assert_eq!(lines("[1]", "{a: 1}", Lists::ByKey), [r#" [1] {"a":1}"#]);
        assert_eq!(lines("9007199254740993", "9007199254740992", Lists::ByKey).len(), 1);
    }

    #[test]
    fn lists_by_key_show_moves_and_fall_back_to_the_index() {
        let old = "ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]";
        let new = "ports: [{port: 53, protocol: UDP, name: x}, {port: 53, protocol: TCP}]";
        assert_eq!(
            lines(old, new, Lists::ByKey),
            [
                r#"ports[port=53,protocol=UDP].name - "x""#,
                r#"ports[order] ["53/TCP","53/UDP"] ["53/UDP","53/TCP"]"#
            ]
        );
        let twice = "env: [{name: a, value: 1}, {name: a, value: 2}]";
        let once = "env: [{name: a, value: 2}]";
        assert_eq!(
            lines(twice, once, Lists::ByKey),
            ["env[0].value 1 2", r#"env[1] {"name":"a","value":2} -"#]
        );
        assert_eq!(lines(old, new, Lists::ByIndex).len(), 3);
    }

    #[test]
    fn equal_values_have_no_difference_and_swapping_swaps() {
        let a = read("{a: [{b: 1}, text], c: null}");
        assert!(compare(&a, &a, Lists::ByKey).is_empty());
        let b = read("{a: [{b: 2}], d: 1}");
        let there = compare(&a, &b, Lists::ByKey);
        let mut back = compare(&b, &a, Lists::ByKey);
        for change in &mut back {
            std::mem::swap(&mut change.old, &mut change.new);
        }
        let by_path = |changes: Vec<super::Change>| {
            let mut changes: Vec<String> = changes.iter().map(|c| format!("{c:?}")).collect();
            changes.sort();
            changes
        };
        assert_eq!(by_path(there), by_path(back));
    }
}
