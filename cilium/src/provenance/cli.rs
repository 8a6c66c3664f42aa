//! Values that a Cilium CLI in its classic mode left: before it installed by Helm releases (until
//! version 0.14), it rendered the chart itself and kept the user values in a Secret
//! (`cilium-cli`, `install/install.go` and `k8s/client.go`, `GetHelmState`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goyaml::{Limits, Map};
use serde_json::Value;

use crate::object::{Field, FieldError, ObjectRef};
use crate::pinned::NAMESPACE;

/// The Secret's name; it lies in Cilium's namespace.
pub const SECRET: &str = "cilium-cli-helm-values";
/// The key of the values, as YAML.
const VALUES: &str = "io.cilium.cilium-cli";
/// The key of the chart's version.
const CHART_VERSION: &str = "io.cilium.chart-version";

/// The values in the Secret. They may hold secrets.
#[derive(Clone, PartialEq)]
pub struct CliValues {
    /// The user values.
    pub values: Map,
    /// The version of the chart that they were for; empty when it is not said.
    pub chart_version: String,
}

impl std::fmt::Debug for CliValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CliValues")
            .field("chart_version", &self.chart_version)
            .finish_non_exhaustive()
    }
}

/// What is wrong with the Secret. Its data is not quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// A field is of a wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// An entry is no base64.
    #[error("data[{key:?}] is not base64")]
    Base64 {
        /// The entry.
        key: &'static str,
    },
    /// The chart's version is no text.
    #[error("data[{CHART_VERSION:?}] is not UTF-8")]
    Version,
    /// The values are no YAML table.
    #[error("data[{VALUES:?}] is not a YAML table")]
    Values,
}

/// The values that the CLI left, if its Secret is among the given ones.
pub(super) fn find(secrets: &[Value]) -> Result<Option<CliValues>, CliError> {
    let is_it = |object: &&Value| {
        let about = ObjectRef::of(object);
        about.name == SECRET && about.namespace == NAMESPACE
    };
    let Some(secret) = secrets.iter().find(is_it) else { return Ok(None) };
    let data = Field::root(secret).get("data")?;
    let entry = |key: &'static str| -> Result<Option<Vec<u8>>, CliError> {
        let text = data.get(key)?.text()?;
        text.map(|text| STANDARD.decode(text).map_err(|_| CliError::Base64 { key })).transpose()
    };
    let Some(values) = entry(VALUES)? else { return Ok(None) };
    let values = goyaml::from_yaml_map(&values, "chartutil.Values", &Limits::default())
        .map_err(|_| CliError::Values)?;
    let chart_version = String::from_utf8(entry(CHART_VERSION)?.unwrap_or_default())
        .map_err(|_| CliError::Version)?;
    Ok(Some(CliValues { values, chart_version }))
}
