//! Documents nested as deep as allowed, and deeper.

use mergepatch::{Error, MAX_DEPTH, Schemas as _, embedded, merge, strategic, to_json};
use serde_json::{Value, json};

/// Objects within objects, so many levels.
fn nested(levels: usize, leaf: &str) -> Value {
    (0..levels).fold(json!(leaf), |below, _| json!({"a": below}))
}

#[test]
fn depth_is_bounded() {
    let (one, two) = (nested(MAX_DEPTH, "1"), nested(MAX_DEPTH, "2"));
    let patch = merge::three_way(&one, &two, &one, &[]).unwrap();
    assert_eq!(patch, two);
    assert_eq!(merge::apply(&one, &patch).unwrap(), two);
    assert!(to_json(&two).ends_with(&"}".repeat(MAX_DEPTH)));

    let schema = embedded().schema("v1", "ConfigMap").unwrap();
    let object = |leaf| json!({"new": nested(MAX_DEPTH - 1, leaf)});
    let applied = strategic::apply(&json!({}), &object("1"), schema).unwrap();
    assert_eq!(applied, object("1"));

    let deeper = nested(MAX_DEPTH + 1, "1");
    let refused = Err(Error::TooDeep { limit: MAX_DEPTH });
    assert_eq!(merge::two_way(&deeper, &one), refused);
    assert_eq!(merge::apply(&one, &deeper), refused);
    assert_eq!(strategic::two_way(&json!({}), &deeper, schema), refused);
    assert_eq!(strategic::apply(&deeper, &json!({}), schema), refused);
}

#[test]
fn operations_take_effect_together() {
    use mergepatch::{Patch, PatchType, apply};
    let patch = |body| Patch { patch_type: PatchType::Json, body };
    let current = json!({"a": {"b": 1}});
    let both = patch(json!([
        {"op": "test", "path": "/a/b", "value": 1},
        {"op": "replace", "path": "/a/b", "value": 2},
    ]));
    assert_eq!(apply(&current, &both, None).unwrap(), json!({"a": {"b": 2}}));
    let second_fails = patch(json!([
        {"op": "remove", "path": "/a/b"},
        {"op": "test", "path": "/a", "value": 1},
    ]));
    assert!(matches!(apply(&current, &second_fails, None), Err(Error::JsonPatch { .. })));
    assert!(matches!(apply(&current, &patch(json!({})), None), Err(Error::JsonPatch { .. })));
    let strategic = Patch { patch_type: PatchType::Strategic, body: json!({}) };
    assert_eq!(apply(&current, &strategic, None), Err(Error::UnsupportedStrategic));
}
