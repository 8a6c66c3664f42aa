//! Patch metadata from OpenAPI documents of both versions.

use mergepatch::{OpenApi, Schemas as _, apply, three_way};
use serde_json::{Value, json};

/// Part of a server's version 3 document, shortened.
fn version_3() -> Value {
    json!({"openapi": "3.0.0", "components": {"schemas": {
        "io.k8s.api.new.v1.Gadget": {
            "type": "object",
            "properties": {
                "kind": {"type": "string"},
                "spec": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.api.new.v1.GadgetSpec"}]},
            },
            "x-kubernetes-group-version-kind": [{"group": "new.k8s.io", "version": "v1", "kind": "Gadget"}],
        },
        "io.k8s.api.new.v1.GadgetSpec": {"type": "object", "properties": {
            "parts": {
                "type": "array",
                "items": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.api.new.v1.Part"}]},
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge,retainKeys",
            },
            "steps": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }},
        "io.k8s.api.new.v1.Part": {"type": "object", "properties": {"name": {"type": "string"}}},
        "io.k8s.networking.gateway.v1.Route": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "gateway.networking.k8s.io", "version": "v1", "kind": "Route"}],
        },
    }}})
}

/// The same as version 2 has it.
fn version_2() -> Value {
    let text = version_3()["components"]["schemas"].to_string();
    let text = text.replace("#/components/schemas/", "#/definitions/");
    let mut definitions: Value = serde_json::from_str(&text).unwrap_or_default();
    let spec = &mut definitions["io.k8s.api.new.v1.Gadget"]["properties"]["spec"];
    *spec = json!({"$ref": "#/definitions/io.k8s.api.new.v1.GadgetSpec"});
    definitions["io.k8s.api.new.v1.GadgetSpec"]["properties"]["parts"]["items"] =
        json!({"$ref": "#/definitions/io.k8s.api.new.v1.Part"});
    json!({"swagger": "2.0", "definitions": definitions})
}

fn gadget(spec: &Value) -> Value {
    json!({"apiVersion": "new.k8s.io/v1", "kind": "Gadget", "spec": spec})
}

#[test]
fn both_versions_tell_how_lists_are_merged() {
    for document in [version_2(), version_3()] {
        let source = OpenApi::new(document);
        let schema = source.schema("new.k8s.io/v1", "Gadget");
        let original =
            gadget(&json!({"parts": [{"name": "a", "x": 1}, {"name": "b"}], "steps": ["1"]}));
        let modified =
            gadget(&json!({"parts": [{"name": "a", "y": 2}], "steps": ["2"], "labels": {}}));
        let current = gadget(
            &json!({"parts": [{"name": "live"}, {"name": "a", "x": 1}, {"name": "b"}], "steps": ["1", "live"]}),
        );
        let patch = three_way(&original, &modified, &current, schema).unwrap();
        let wanted = json!({"spec": {
            "$setElementOrder/parts": [{"name": "a"}],
            "labels": {},
            "parts": [
                {"$retainKeys": ["name", "y"], "name": "a", "x": null, "y": 2},
                {"$patch": "delete", "name": "b"},
            ],
            "steps": ["2"],
        }});
        assert_eq!(patch.body, wanted);
        let after = apply(&current, &patch, schema).unwrap();
        let wanted = gadget(
            &json!({"parts": [{"name": "live"}, {"name": "a", "y": 2}], "steps": ["2"], "labels": {}}),
        );
        assert_eq!(after, wanted);
    }
}

#[test]
fn custom_resources_have_no_patch_metadata() {
    let source = OpenApi::new(version_3());
    assert!(source.schema("gateway.networking.k8s.io/v1", "Route").is_none());
    assert!(source.schema("v1", "Pod").is_none());
}

#[test]
fn fields_that_a_document_does_not_have() {
    let text = |document, spec: Value, live: Value| {
        let source = OpenApi::new(document);
        let schema = source.schema("new.k8s.io/v1", "Gadget");
        let error = three_way(&gadget(&live), &gadget(&spec), &gadget(&live), schema);
        error.unwrap_err().to_string()
    };
    let (new, live) = (json!({"no": {"a": 1}}), json!({"no": {"a": 2}}));
    assert_eq!(text(version_3(), new.clone(), live.clone()), "unable to find api field \"no\"");
    assert_eq!(
        text(version_2(), new, live),
        "unable to find api field \"no\" in io.k8s.api.new.v1.GadgetSpec"
    );
    let (new, live) = (json!({"labels": {"a": {"b": 1}}}), json!({"labels": {"a": {"b": 2}}}));
    assert_eq!(text(version_2(), new, live), "expected kind, but got map");
}
