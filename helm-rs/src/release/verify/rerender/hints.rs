//! What a chart's templates ask about the cluster.

use std::collections::BTreeSet;

use bstr::ByteSlice;

use super::attempt::Subject;

/// What attempts may vary.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// API versions that templates ask for by name.
    pub(super) api_versions: BTreeSet<String>,
    /// API versions, alone and with kinds, that the stored manifest uses.
    pub(super) used: BTreeSet<String>,
    /// Whether templates ask for the Kubernetes version, or the chart wants one.
    pub(super) kube_version: bool,
    /// Whether templates ask for the revision, or whether this is an upgrade.
    pub(super) revision: bool,
}

impl Hints {
    pub(super) fn of(subject: &Subject) -> Self {
        let mut hints = Self {
            kube_version: !subject.chart.metadata.kube_version.is_empty(),
            ..Self::default()
        };
        for object in subject.objects.iter().filter(|object| object.fault.is_none()) {
            let version = &object.api_version;
            hints.used.insert(format!("{version}/{}", object.identity.kind));
            hints.used.insert(version.clone());
        }
        for template in &subject.chart.templates {
            let text = &template.data;
            hints.kube_version |= text.contains_str("KubeVersion");
            hints.revision |=
                ["Release.Revision", "Release.IsUpgrade", "Release.IsInstall", ".Release "]
                    .iter()
                    .any(|word| text.contains_str(word));
            asked(text, &mut hints.api_versions);
        }
        hints
    }
}

/// The texts right behind `APIVersions.Has`.
fn asked(template: &[u8], found: &mut BTreeSet<String>) {
    const CALL: &str = "APIVersions.Has";
    for at in template.find_iter(CALL) {
        let rest = template.get(at + CALL.len()..).unwrap_or_default().trim_start();
        let Some((&quote, rest)) = rest.split_first() else { continue };
        if quote != b'"' && quote != b'`' {
            continue;
        }
        let Some(end) = rest.find_byte(quote).filter(|end| *end < 256) else { continue };
        if let Some(Ok(name)) = rest.get(..end).map(|name| name.to_str()) {
            found.insert(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn api_versions_are_read_off_templates() {
        let mut found = std::collections::BTreeSet::new();
        let text = b"{{ if .Capabilities.APIVersions.Has \"a/v1\" }}{{ $.Capabilities.APIVersions.Has `b/v1/C` }}{{ .Capabilities.APIVersions.Has $x }}APIVersions.Has \"";
        super::asked(text, &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a/v1", "b/v1/C"]);
    }
}
