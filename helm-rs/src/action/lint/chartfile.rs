//! Rules about `Chart.yaml` (`pkg/lint/rules/chartfile.go`).

use std::fs;
use std::path::Path;

use goyaml::Value;

use super::addresses::{is_email, is_request_url, is_url};
use super::report::{Linter, Severity};
use crate::chart::{Metadata, decode_metadata};
use crate::gopath;
use crate::gotext::{io_text, quote};
use crate::semver::{Constraint, Version};

const FILE: &str = "Chart.yaml";

pub(super) fn check(linter: &mut Linter, folder: &Path) {
    let path = folder.join(FILE);
    let is_folder = path.is_dir().then(|| "should be a file, not a directory".to_owned());
    linter.rule(Severity::Error, FILE, is_folder);
    let mut metadata = Metadata::default();
    let text = fs::read(&path)
        .map_err(|error| {
            let operation = if path.is_dir() { "read" } else { "open" };
            format!("{operation} {}: {}", path.display(), io_text(&error))
        })
        .and_then(|text| match decode_metadata(&text, &mut metadata) {
            Ok(()) => Ok(text),
            Err(error) => Err(crate::error_chain(&error)),
        });
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            let found = format!("unable to parse YAML\n\t{error}");
            linter.rule(Severity::Error, FILE, Some(found));
            return;
        }
    };
    let untyped = goyaml::from_yaml(&text, &goyaml::Limits::default()).unwrap_or_default();
    linter.rule(Severity::Error, FILE, name(&metadata));
    linter.rule(Severity::Error, FILE, api_version(&metadata));
    linter.rule(Severity::Error, FILE, is_text(&untyped, "version"));
    linter.rule(Severity::Error, FILE, version(&metadata));
    linter.rule(Severity::Error, FILE, is_text(&untyped, "appVersion"));
    linter.rule(Severity::Error, FILE, maintainers(&metadata));
    linter.rule(Severity::Error, FILE, sources(&metadata));
    let no_icon = metadata.icon.is_empty().then(|| "icon is recommended".to_owned());
    linter.rule(Severity::Info, FILE, no_icon);
    linter.rule(Severity::Error, FILE, icon(&metadata));
    linter.rule(Severity::Error, FILE, chart_type(&metadata));
    linter.rule(Severity::Error, FILE, dependencies(&metadata));
}

fn name(metadata: &Metadata) -> Option<String> {
    if metadata.name.is_empty() {
        return Some("name is required".to_owned());
    }
    (gopath::base(&metadata.name) != metadata.name)
        .then(|| format!("chart name {} is invalid", quote(&metadata.name)))
}

fn api_version(metadata: &Metadata) -> Option<String> {
    match metadata.api_version.as_str() {
        "v1" | "v2" => None,
        "" => Some("apiVersion is required. The value must be either \"v1\" or \"v2\"".to_owned()),
        other => Some(format!(
            "apiVersion '{other}' is not valid. The value must be either \"v1\" or \"v2\""
        )),
    }
}

fn is_text(untyped: &Value, key: &str) -> Option<String> {
    let value = untyped.get(key)?;
    (value.as_str().is_none())
        .then(|| format!("{key} should be of type string but it's of type {}", value.type_name()))
}

fn version(metadata: &Metadata) -> Option<String> {
    if metadata.version.is_empty() {
        return Some("version is required".to_owned());
    }
    let Ok(version) = Version::parse(&metadata.version) else {
        return Some(format!("version '{}' is not a valid SemVer", metadata.version));
    };
    let constraint = match Constraint::parse(">0.0.0-0") {
        Ok(constraint) => constraint,
        Err(error) => return Some(error.to_string()),
    };
    let mismatch = constraint.validate(&version).err()?.into_iter().next()?;
    Some(format!("version {mismatch}"))
}

fn maintainers(metadata: &Metadata) -> Option<String> {
    metadata.maintainers.iter().find_map(|maintainer| {
        if maintainer.null {
            return Some("a maintainer entry is empty".to_owned());
        }
        let name = &maintainer.name;
        if name.is_empty() {
            return Some("each maintainer requires a name".to_owned());
        }
        if !maintainer.email.is_empty() && !is_email(&maintainer.email) {
            return Some(format!("invalid email '{}' for maintainer '{name}'", maintainer.email));
        }
        (!maintainer.url.is_empty() && !is_url(&maintainer.url))
            .then(|| format!("invalid url '{}' for maintainer '{name}'", maintainer.url))
    })
}

fn sources(metadata: &Metadata) -> Option<String> {
    let wrong = metadata.sources.iter().find(|source| !is_request_url(source))?;
    Some(format!("invalid source URL '{wrong}'"))
}

fn icon(metadata: &Metadata) -> Option<String> {
    (!metadata.icon.is_empty() && !is_request_url(&metadata.icon))
        .then(|| format!("invalid icon URL '{}'", metadata.icon))
}

fn chart_type(metadata: &Metadata) -> Option<String> {
    (!metadata.chart_type.is_empty() && metadata.api_version != "v2").then(|| {
        format!(
            "chart type is not valid in apiVersion '{}'. It is valid in apiVersion 'v2'",
            metadata.api_version
        )
    })
}

fn dependencies(metadata: &Metadata) -> Option<String> {
    let any = metadata.dependencies.as_ref().is_some_and(|d| !d.is_empty());
    (any && metadata.api_version != "v2").then(|| {
        format!(
            "dependencies are not valid in the Chart file with apiVersion '{}'. They are valid \
             in apiVersion 'v2'",
            metadata.api_version
        )
    })
}
