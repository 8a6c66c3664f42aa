//! Values that are wanted, laid over those of a release.

use goyaml::{Map, Value};

/// The release's values with what is wanted: `wanted` over `base`, and without what `before` asked
/// for and `wanted` does not ask for any more. What nobody asked for stays: values that were taken
/// over, and those that an action on the release brought since, such as a rollback.
pub(super) fn overlay(base: &Map, before: &Map, wanted: &Map) -> Map {
    let mut values = base.clone();
    lay(&mut values, before, wanted);
    values
}

fn lay(values: &mut Map, before: &Map, wanted: &Map) {
    for (key, old) in before {
        if wanted.get(key).is_some() {
            continue;
        }
        match (old, values.get_mut(key)) {
            // A table that was asked for loses what was asked for in it, and goes when it is empty.
            (Value::Map(old), Some(Value::Map(table))) => {
                lay(table, old, &Map::default());
                if table.is_empty() {
                    values.remove(key);
                }
            }
            (old, Some(value)) if value == old => drop(values.remove(key)),
            _ => {}
        }
    }
    for (key, new) in wanted {
        match (new, values.get_mut(key)) {
            (Value::Map(new), Some(Value::Map(table))) => {
                let nothing = Map::default();
                let old = before.get(key).and_then(Value::as_map).unwrap_or(&nothing);
                lay(table, old, new);
            }
            _ => drop(values.insert(key.clone(), new.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Map {
        goyaml::from_yaml_map(text.as_bytes(), "values", &goyaml::Limits::default()).unwrap()
    }

    #[test]
    fn what_was_asked_for_goes_again_and_the_rest_stays() {
        for (base, before, wanted, expected) in [
            // Nothing was asked for, and nothing is.
            ("{a: 1, b: {c: 2}}", "{}", "{}", "{a: 1, b: {c: 2}}"),
            // A new value beside those that were taken over.
            ("{a: 1, b: {c: 2}}", "{}", "{b: {d: 3}}", "{a: 1, b: {c: 2, d: 3}}"),
            // Over one of them.
            ("{a: 1, b: {c: 2}}", "{}", "{b: {c: 3}}", "{a: 1, b: {c: 3}}"),
            // Taken away, with the table that it alone was in.
            ("{a: 1, b: {c: 2}}", "{b: {c: 2}}", "{}", "{a: 1}"),
            ("{a: 1, b: {c: 2, d: 3}}", "{b: {c: 2}}", "{b: {}}", "{a: 1, b: {d: 3}}"),
            // A table becomes a value, and back.
            ("{b: {c: 2}}", "{b: {c: 2}}", "{b: true}", "{b: true}"),
            ("{b: true}", "{b: true}", "{b: {c: 2}}", "{b: {c: 2}}"),
            // A list is one value; a null is one too, by which Helm drops a default.
            ("{a: [1, 2]}", "{a: [1, 2]}", "{a: [3]}", "{a: [3]}"),
            ("{a: 1}", "{}", "{a: null}", "{a: null}"),
            // Another value has come since, by hand or by a rollback: not what was asked for.
            ("{a: 5}", "{a: 1}", "{}", "{a: 5}"),
            ("{b: {c: 2, d: 4}}", "{b: {c: 2, d: 3}}", "{}", "{b: {d: 4}}"),
            ("{b: 1}", "{b: {c: 2}}", "{}", "{b: 1}"),
            ("{b: {c: 2}}", "{b: 1}", "{}", "{b: {c: 2}}"),
        ] {
            let got = overlay(&values(base), &values(before), &values(wanted));
            assert_eq!(got, values(expected), "{base} - {before} + {wanted}");
        }
    }
}
