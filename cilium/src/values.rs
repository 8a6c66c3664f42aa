//! The values that ichor renders Cilium with.
//!
//! One function, at a bootstrap, a takeover and every later upgrade: the user's values, with the
//! owned keys as the facts want them. (Takeover rules, section 2, points 2 and 4.)

use std::collections::btree_map::Entry;

use goyaml::{Map, Value};

use crate::owned::{Facts, KEYS, Wanted, is_same_setting, take};

/// What is rendered, and what became of the user's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The user's values with the owned keys decided: what is passed to the chart and stored in
    /// the record.
    pub values: Map,
    /// Owned keys under which the user said something else.
    pub overridden: Vec<Overridden>,
    /// Owned keys under which the user said nothing, with what they are set to.
    pub added: Vec<(String, Value)>,
}

/// The user's value under an owned key that was not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Overridden {
    /// The key.
    pub key: String,
    /// The user's value.
    pub said: Value,
    /// What is taken instead; none: the chart's default.
    pub wanted: Option<Value>,
}

/// A table of an owned key is something else in the user's values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the values have {found} under {key}, where Cilium's chart has a table")]
pub struct ValuesError {
    /// The key of the table.
    pub key: String,
    /// What is there, as a Go type.
    pub found: &'static str,
}

/// The effective values for the user's ones.
///
/// # Errors
/// [`ValuesError`]
pub fn effective(user: &Map, facts: &Facts) -> Result<Effective, ValuesError> {
    let mut values = user.clone();
    let (mut overridden, mut added) = (Vec::new(), Vec::new());
    for key in &KEYS {
        let wanted = match (key.wanted)(facts) {
            Wanted::User => continue,
            Wanted::Default => None,
            Wanted::Value(value) => Some(value),
        };
        let said = take(&mut values, key.path);
        // The user's form of the same setting is what was rendered before: 7445 or "7445".
        if let (Some(said), Some(value)) = (&said, &wanted)
            && is_same_setting(said, value)
        {
            set(&mut values, key.path, said.clone())?;
            continue;
        }
        if let Some(value) = &wanted {
            set(&mut values, key.path, value.clone())?;
        }
        match (said, wanted) {
            (Some(said), wanted) => overridden.push(Overridden { key: key.name(), said, wanted }),
            (None, Some(wanted)) => added.push((key.name(), wanted)),
            (None, None) => {}
        }
    }
    Ok(Effective { values, overridden, added })
}

/// Sets a value, making the tables on the way. A null table counts as absent.
///
/// # Errors
/// [`ValuesError`] when something on the way is no table.
pub fn set(values: &mut Map, path: &[&str], value: Value) -> Result<(), ValuesError> {
    let Some((key, tables)) = path.split_last() else { return Ok(()) };
    let mut table = values;
    for (at, name) in tables.iter().enumerate() {
        let next = match table.entry(*name) {
            Entry::Vacant(entry) => entry.insert(Value::Map(Map::new())),
            Entry::Occupied(entry) => entry.into_mut(),
        };
        if next.is_null() {
            *next = Value::Map(Map::new());
        }
        let found = next.type_name();
        table = next.as_map_mut().ok_or_else(|| ValuesError {
            key: path.get(..=at).unwrap_or_default().join("."),
            found,
        })?;
    }
    table.insert(*key, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube_proxy::Replacement;

    fn values(text: &str) -> Map {
        goyaml::from_yaml_map(text.as_bytes(), "values", &goyaml::Limits::default()).unwrap()
    }

    fn yaml(values: &Map) -> String {
        goyaml::to_yaml(&Value::Map(values.clone())).unwrap()
    }

    #[test]
    fn a_bootstrap_leaves_the_user_what_nothing_live_decides() {
        let user = values("routingMode: native\nk8sServiceHost: api\nipam: {mode: eni}\n");
        let effective = effective(&user, &Facts::bootstrap(None, false)).unwrap();
        assert_eq!(
            yaml(&effective.values),
            "ipam:\n  mode: kubernetes\nk8sServiceHost: api\nroutingMode: native\n"
        );
        assert_eq!((effective.overridden.len(), effective.added), (1, Vec::new()));
    }

    #[test]
    fn a_bootstrap_on_talos() {
        let facts = Facts::bootstrap(Some(Replacement::On), true);
        let effective = effective(&Map::new(), &facts).unwrap();
        let text = yaml(&effective.values);
        assert!(text.contains("k8sServiceHost: localhost\nk8sServicePort: 7445\n"), "{text}");
        assert!(text.contains("kubeProxyReplacement: true\n"), "{text}");
        assert!(text.contains("cgroup:\n  autoMount:\n    enabled: false\n"), "{text}");
        assert_eq!(effective.overridden, []);
    }

    #[test]
    fn the_users_form_of_the_same_setting_is_kept() {
        let facts = Facts::bootstrap(Some(Replacement::On), true);
        let user = values(
            "k8sServicePort: '7445'\nkubeProxyReplacement: 'true'\nk8sServiceHost: localhost\n\
             cgroup: {autoMount: {enabled: 'false'}}\nsecurityContext: {capabilities: \
             {cleanCiliumState: [SYS_RESOURCE, SYS_ADMIN, NET_ADMIN], ciliumAgent: [CHOWN]}}\n",
        );
        let effective = effective(&user, &facts).unwrap();
        let text = yaml(&effective.values);
        assert!(
            text.contains("k8sServicePort: \"7445\"\nkubeProxyReplacement: \"true\"\n"),
            "{text}"
        );
        assert!(text.contains("- SYS_RESOURCE\n    - SYS_ADMIN\n    - NET_ADMIN\n"), "{text}");
        let keys: Vec<_> = effective.overridden.into_iter().map(|one| one.key).collect();
        assert_eq!(keys, ["securityContext.capabilities.ciliumAgent"]);
    }

    #[test]
    fn the_same_input_gives_the_same_values_and_again() {
        let facts = Facts::bootstrap(Some(Replacement::Off), true);
        let user = values("a: [1, {b: null}]\nipam: null\ncgroup: {x: y}\n");
        let once = effective(&user, &facts).unwrap();
        assert_eq!(once, effective(&user, &facts).unwrap());
        let added: Vec<&str> = once.added.iter().map(|(key, _)| key.as_str()).collect();
        assert!(added.contains(&"ipam.mode") && added.contains(&"cgroup.hostRoot"), "{added:?}");
        let again = effective(&once.values, &facts).unwrap();
        assert_eq!((once.values, Vec::new()), (again.values, again.added));
        assert_eq!(once.overridden, []);
    }

    #[test]
    fn a_table_that_is_none_is_named() {
        let facts = Facts::bootstrap(None, true);
        let error = effective(&values("securityContext: {capabilities: [A]}"), &facts);
        assert_eq!(
            error.unwrap_err().to_string(),
            "the values have []interface {} under securityContext.capabilities, where Cilium's \
             chart has a table"
        );
    }
}
