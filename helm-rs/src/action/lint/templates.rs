//! Rules about templates and what they render to (`pkg/lint/rules/template.go`).

use std::path::Path;

use bstr::{BString, ByteSlice};
use goyaml::{Map, Value};

use super::report::{Linter, Severity};
use super::{Options, deprecations, names};
use crate::capabilities::Capabilities;
use crate::chart::{DecodeError, Struct, Target, Warning, decode_target};
use crate::gopath;
use crate::gotext::quote;
use crate::render::{Engine, Host, Release};
use crate::values::{self, Nulls};

/// What the rules read of an object (`K8sYamlStruct`).
static OBJECT: Struct = Struct {
    name: "K8sYamlStruct",
    go_type: "rules.K8sYamlStruct",
    fields: &[
        ("apiVersion", Target::Text),
        ("Kind", Target::Text),
        ("Metadata", Target::Struct(&METADATA)),
    ],
};

static METADATA: Struct = Struct {
    name: "k8sYamlMetadata",
    go_type: "rules.k8sYamlMetadata",
    fields: &[("Namespace", Target::Text), ("Name", Target::Text)],
};

/// What the rules read of a list of objects.
static LIST: Struct = Struct {
    name: "",
    go_type: "struct { Items []struct { Metadata struct { Annotations map[string]string } } }",
    fields: &[(
        "Items",
        Target::Seq(
            &Target::Struct(&LIST_ITEM),
            "struct { Metadata struct { Annotations map[string]string } }",
        ),
    )],
};

static LIST_ITEM: Struct = Struct {
    name: "",
    go_type: "struct { Metadata struct { Annotations map[string]string } }",
    fields: &[("Metadata", Target::Struct(&LIST_METADATA))],
};

static LIST_METADATA: Struct = Struct {
    name: "",
    go_type: "struct { Annotations map[string]string }",
    fields: &[("Annotations", Target::Map(&Target::Text, "string"))],
};

pub(super) fn check(
    linter: &mut Linter,
    engine: &Engine,
    folder: &Path,
    user_values: &Map,
    options: &Options,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) {
    const PLACE: &str = "templates/";
    let templates = folder.join("templates");
    let no_folder =
        (templates.exists() && !templates.is_dir()).then(|| "not a directory".to_owned());
    if !linter.rule(Severity::Warning, PLACE, no_folder) {
        return;
    }
    let mut chart = match crate::chart::load(folder, &options.limits, warnings) {
        Ok(chart) => chart,
        Err(error) => {
            linter.rule(Severity::Error, PLACE, Some(crate::error_chain(&error)));
            return;
        }
    };
    // Helm gives up without a word where values cannot be joined.
    if values::process_dependencies(&mut chart, user_values, Nulls::Keep, warnings).is_err() {
        return;
    }
    let Ok(once) = values::coalesce_values(&chart, user_values, warnings) else { return };
    let effective = match values::coalesce_shared(&chart, &once, Nulls::Remove, warnings) {
        Ok(effective) => effective,
        Err(error) => {
            linter.rule(Severity::Error, PLACE, Some(error.to_string()));
            return;
        }
    };
    if !options.skip_schema_validation {
        let valid = match effective.graph.export(effective.root) {
            Ok(exported) => engine
                .validate(&chart, &exported, warnings)
                .map_err(|error| crate::error_chain(&error)),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = valid {
            linter.rule(Severity::Error, PLACE, Some(error));
            return;
        }
    }
    let release = Release {
        name: "test-release".to_owned(),
        namespace: options.namespace.clone(),
        revision: 0,
        is_upgrade: false,
        is_install: false,
    };
    let capabilities =
        Capabilities { kube_version: options.kube_version.clone(), ..Capabilities::default() };
    let rendered = match engine.render(&chart, &effective, &release, &capabilities, host) {
        Ok(rendered) => rendered,
        Err(error) => {
            linter.rule(Severity::Error, PLACE, Some(error.to_string()));
            return;
        }
    };
    for template in &chart.templates {
        let name = &template.name;
        linter.rule(Severity::Error, name, extension(name));
        linter.rule(Severity::Warning, name, crd_hook(&template.data));
        linter.rule(Severity::Error, name, release_time(&template.data));
        if gopath::ext(name) != ".yaml" {
            continue;
        }
        let text = rendered.get(&gopath::join(chart.name(), name));
        if let Some(text) = text.filter(|text| !text.trim().is_empty())
            && !manifests(linter, name, text, options)
        {
            return;
        }
    }
}

/// Checks what one template rendered to; false ends the whole lint, as in Helm.
fn manifests(linter: &mut Linter, name: &str, text: &BString, options: &Options) -> bool {
    linter.rule(Severity::Warning, name, indentation(text));
    for document in documents(text) {
        let object = document.and_then(|document| {
            decode_target(document, &OBJECT).map_err(|error| crate::error_chain(&error))
        });
        let object = match object {
            Ok(Some(object)) => object,
            Ok(None) => continue,
            Err(error) => {
                let found = format!("unable to parse YAML: {error}");
                linter.rule(Severity::Error, name, Some(found));
                return false;
            }
        };
        let api_version = field(&object, "apiVersion");
        let kind = field(&object, "kind");
        let object_name = object
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(b"metadata"))
            .and_then(|(_, metadata)| metadata.as_map())
            .map_or_else(String::new, |metadata| field(metadata, "name"));
        linter.rule(Severity::Warning, name, names::check(&kind, &object_name));
        let deprecated = deprecations::warning(&api_version, &kind, &options.kube_version);
        linter.rule(Severity::Warning, name, deprecated);
        linter.rule(Severity::Error, name, selector(&kind, &object_name, text));
        linter.rule(Severity::Error, name, list_annotations(&kind, text));
    }
    true
}

/// The text of a field, its name compared without case as Go does.
fn field(map: &Map, name: &str) -> String {
    map.iter()
        .filter(|(key, _)| key.eq_ignore_ascii_case(name.as_bytes()))
        .filter_map(|(_, value)| value.as_str().map(ToString::to_string))
        .next_back()
        .unwrap_or_default()
}

/// The documents of a stream, as Kubernetes takes it apart
/// (`k8s.io/apimachinery/pkg/util/yaml`, `YAMLReader`): at lines that begin with `---`.
fn documents(text: &[u8]) -> Vec<Result<&[u8], String>> {
    let mut documents = Vec::new();
    let mut start = 0;
    let mut at = 0;
    for line in text.lines_with_terminator() {
        if let Some(rest) = line.strip_prefix(b"---") {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with(b"#") {
                let rest = rest.to_str_lossy();
                documents.push(Err(format!("invalid Yaml document separator: {rest}")));
                return documents;
            }
            if at > start {
                documents.push(Ok(text.get(start..at).unwrap_or_default()));
            }
            start = at + line.len();
        }
        at += line.len();
    }
    if at > start {
        documents.push(Ok(text.get(start..).unwrap_or_default()));
    }
    documents
}

fn extension(name: &str) -> Option<String> {
    let extension = gopath::ext(name);
    (!matches!(extension, ".yaml" | ".yml" | ".tpl" | ".txt")).then(|| {
        format!(
            "file extension '{extension}' not valid. Valid extensions are .yaml, .yml, .tpl, or .txt"
        )
    })
}

fn crd_hook(text: &[u8]) -> Option<String> {
    // The expression is `"?helm\.sh/hook"?:\s+crd-install`.
    let found = text.find_iter("helm.sh/hook").any(|at| {
        let rest = text.get(at + "helm.sh/hook".len()..).unwrap_or_default();
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        let Some(rest) = rest.strip_prefix(b":") else { return false };
        let value = rest.trim_start_with(|c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c'));
        value.len() < rest.len() && value.starts_with(b"crd-install")
    });
    found.then(|| {
        "manifest is a crd-install hook. This hook is no longer supported in v3 and all CRDs \
         should also exist the crds/ directory at the top level of the chart"
            .to_owned()
    })
}

fn release_time(text: &[u8]) -> Option<String> {
    text.contains_str(".Release.Time").then(|| {
        ".Release.Time has been removed in v3, please replace with the `now` function in your \
         templates"
            .to_owned()
    })
}

fn indentation(text: &[u8]) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    (line.starts_with(b" ") || line.starts_with(b"\t")).then(|| {
        format!(
            "document starts with an illegal indent: {}, which may cause parsing problems",
            quote(line)
        )
    })
}

fn selector(kind: &str, name: &str, text: &[u8]) -> Option<String> {
    let needs = matches!(kind, "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet");
    let has = text.contains_str("matchLabels") || text.contains_str("matchExpressions");
    (needs && !has).then(|| {
        format!(
            "a {kind} must contain matchLabels or matchExpressions, and {} does not",
            quote(name)
        )
    })
}

fn list_annotations(kind: &str, text: &[u8]) -> Option<String> {
    if kind != "List" {
        return None;
    }
    let list: Result<Option<Map>, DecodeError> = decode_target(text, &LIST);
    let list = match list {
        Ok(list) => list.unwrap_or_default(),
        Err(error) => return Some(format!("unable to parse YAML: {}", crate::error_chain(&error))),
    };
    let child = |map: &Map, name: &str| {
        map.iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value.clone())
    };
    let items = child(&list, "items").unwrap_or_default();
    items
        .as_seq()
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_map)
        .filter_map(|item| child(item, "metadata")?.into_map())
        .filter_map(|metadata| child(&metadata, "annotations")?.into_map())
        .any(|annotations| annotations.contains_key("helm.sh/resource-policy"))
        .then(|| "Annotation 'helm.sh/resource-policy' within List objects are ignored".to_owned())
}
