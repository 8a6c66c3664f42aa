//! What a chart says about itself as `encoding/json` writes Helm's structs
//! (`pkg/chart/{metadata,dependency}.go`).

use goyaml::json;

use super::metadata::{Dependency, ImportValues, Lock, Maintainer, Metadata};
use crate::gojson::{Fields, string};

/// A JSON array of JSON texts.
pub(crate) fn array(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    format!("[{}]", items.join(","))
}

/// `Chart.yaml` as JSON.
///
/// # Errors
/// When an entry of `import-values` is no JSON: not a number, or too deep.
pub fn metadata(metadata: &Metadata) -> Result<String, goyaml::json::Error> {
    let mut fields = Fields::default();
    fields.text("name", &metadata.name);
    fields.text("home", &metadata.home);
    fields.texts("sources", &metadata.sources);
    fields.text("version", &metadata.version);
    fields.text("description", &metadata.description);
    fields.texts("keywords", &metadata.keywords);
    if !metadata.maintainers.is_empty() {
        fields.raw("maintainers", &array(metadata.maintainers.iter().map(maintainer)));
    }
    fields.text("icon", &metadata.icon);
    fields.text("apiVersion", &metadata.api_version);
    fields.text("condition", &metadata.condition);
    fields.text("tags", &metadata.tags);
    fields.text("appVersion", &metadata.app_version);
    if metadata.deprecated {
        fields.raw("deprecated", "true");
    }
    if !metadata.annotations.is_empty() {
        let mut annotations = Fields::default();
        for (key, value) in &metadata.annotations {
            annotations.raw_key(key.as_bytes(), &string(value));
        }
        fields.raw("annotations", &annotations.end());
    }
    fields.text("kubeVersion", &metadata.kube_version);
    if let Some(all) = metadata.dependencies.as_ref().filter(|all| !all.is_empty()) {
        fields.raw("dependencies", &dependencies(all)?);
    }
    fields.text("type", &metadata.chart_type);
    Ok(fields.end())
}

fn maintainer(maintainer: &Maintainer) -> String {
    if maintainer.null {
        return "null".to_owned();
    }
    let mut fields = Fields::default();
    fields.text("name", &maintainer.name);
    fields.text("email", &maintainer.email);
    fields.text("url", &maintainer.url);
    fields.end()
}

/// `Chart.lock` as JSON.
///
/// # Errors
/// As [`metadata`].
pub fn lock(lock: &Lock) -> Result<String, goyaml::json::Error> {
    let mut fields = Fields::default();
    fields.raw("generated", &string(&lock.generated));
    fields.raw("digest", &string(&lock.digest));
    let list = lock.dependencies.as_ref().map(|list| dependencies(list)).transpose()?;
    fields.raw("dependencies", list.as_deref().unwrap_or("null"));
    Ok(fields.end())
}

/// A list of dependencies as JSON.
///
/// # Errors
/// As [`metadata`].
pub fn dependencies(list: &[Dependency]) -> Result<String, goyaml::json::Error> {
    let items: Result<Vec<String>, _> = list.iter().map(dependency).collect();
    Ok(array(items?.into_iter()))
}

fn dependency(dependency: &Dependency) -> Result<String, goyaml::json::Error> {
    if dependency.null {
        return Ok("null".to_owned());
    }
    let mut fields = Fields::default();
    fields.raw("name", &string(&dependency.name));
    fields.text("version", &dependency.version);
    fields.raw("repository", &string(&dependency.repository));
    fields.text("condition", &dependency.condition);
    fields.texts("tags", &dependency.tags);
    if dependency.enabled {
        fields.raw("enabled", "true");
    }
    if !dependency.import_values.is_empty() {
        let items: Result<Vec<String>, _> =
            dependency.import_values.iter().map(import_value).collect();
        fields.raw("import-values", &array(items?.into_iter()));
    }
    fields.text("alias", &dependency.alias);
    Ok(fields.end())
}

fn import_value(import: &ImportValues) -> Result<String, goyaml::json::Error> {
    match import {
        ImportValues::Written(value) => json::to_json(value),
        ImportValues::Resolved { child, parent } => {
            let mut fields = Fields::default();
            fields.raw("child", &string(child));
            fields.raw("parent", &string(parent));
            Ok(fields.end())
        }
    }
}
