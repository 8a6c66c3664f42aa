//! CustomResourceDefinitions, which API servers store in a version that they do not serve any more
//! (`storageConfig` of `apiextensions-apiserver` is v1beta1), brought to the one that they serve.
//!
//! The old version says schema, subresources, columns and fields once for all versions of the
//! resource, when they are alike (`Convert_apiextensions_CustomResourceDefinitionSpec_To_v1_…` in
//! `apis/apiextensions/v1/conversion.go`).

use goyaml::{Map, Value};

/// The version that is stored, and the one that is served.
const STORED: &str = "apiextensions.k8s.io/v1beta1";
const SERVED: &str = "apiextensions.k8s.io/v1";

/// What the old version may say for all versions of the resource, and its name in each of them.
const SHARED: [(&str, &str); 4] = [
    ("subresources", "subresources"),
    ("validation", "schema"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Converts an object of the stored version; others stay as they are.
pub(super) fn convert(object: &mut Map) {
    let is = |field: &str, wanted: &str| {
        object.get(field).and_then(Value::as_str).is_some_and(|text| text == wanted)
    };
    if !is("apiVersion", STORED) || !is("kind", "CustomResourceDefinition") {
        return;
    }
    object.insert("apiVersion", SERVED);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_map_mut) {
        convert_spec(spec);
    }
}

fn convert_spec(spec: &mut Map) {
    let version = spec.remove("version");
    let has_versions =
        spec.get("versions").and_then(Value::as_seq).is_some_and(|it| !it.is_empty());
    if let Some(version) = version
        && !has_versions
    {
        let only = [("name", version), ("served", true.into()), ("storage", true.into())];
        spec.insert("versions", Value::Seq(vec![Value::Map(only.into_iter().collect())]));
    }
    if spec.get("preserveUnknownFields").and_then(Value::as_bool) != Some(true) {
        spec.remove("preserveUnknownFields");
    }
    for (shared, own) in SHARED {
        let Some(value) = spec.remove(shared).filter(|value| !value.is_null()) else { continue };
        for version in versions(spec) {
            version.insert(own, value.clone());
        }
    }
    for version in versions(spec) {
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_seq_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_map_mut) {
            if let Some(path) = column.remove("JSONPath") {
                column.insert("jsonPath", path);
            }
        }
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_map_mut) {
        let mut webhook = Map::new();
        for (old, new) in [
            ("webhookClientConfig", "clientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ] {
            if let Some(value) = conversion.remove(old).filter(|value| !value.is_null()) {
                webhook.insert(new, value);
            }
        }
        if !webhook.is_empty() {
            conversion.insert("webhook", Value::Map(webhook));
        }
    }
}

fn versions(spec: &mut Map) -> impl Iterator<Item = &mut Map> {
    let versions = spec.get_mut("versions").and_then(Value::as_seq_mut);
    versions.into_iter().flatten().filter_map(Value::as_map_mut)
}

#[cfg(test)]
mod tests {
    use goyaml::{Limits, Value};

    fn converted(spec: &str) -> String {
        let text = format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","spec":{spec}}}"#
        );
        let value = goyaml::json::from_json_exact(text.as_bytes(), &Limits::default()).unwrap();
        let mut object = value.into_map().unwrap();
        super::convert(&mut object);
        assert_eq!(object.get("apiVersion"), Some(&Value::from("apiextensions.k8s.io/v1")));
        goyaml::json::to_json(object.get("spec").unwrap()).unwrap()
    }

    #[test]
    fn what_is_shared_goes_into_each_version() {
        assert_eq!(
            converted(
                r#"{"conversion":{"strategy":"None"},"preserveUnknownFields":false,"validation":{"openAPIV3Schema":{}},"additionalPrinterColumns":[{"name":"a","JSONPath":".b"}],"version":"v1","versions":[{"name":"v1"},{"name":"v2"}]}"#
            ),
            r#"{"conversion":{"strategy":"None"},"versions":[{"additionalPrinterColumns":[{"jsonPath":".b","name":"a"}],"name":"v1","schema":{"openAPIV3Schema":{}}},{"additionalPrinterColumns":[{"jsonPath":".b","name":"a"}],"name":"v2","schema":{"openAPIV3Schema":{}}}]}"#
        );
    }

    #[test]
    fn a_version_alone_and_a_webhook() {
        assert_eq!(
            converted(
                r#"{"version":"v1","preserveUnknownFields":true,"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}}"#
            ),
            r#"{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}},"preserveUnknownFields":true,"versions":[{"name":"v1","served":true,"storage":true}]}"#
        );
    }
}
