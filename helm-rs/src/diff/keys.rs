//! Merge keys: what tells the items of a list apart.

use bstr::{BStr, BString};
use goyaml::Value;

use super::path::key_text;

/// Lists by the name of their field, and the fields that identify an item, most telling first:
/// the `patchMergeKey`s of Kubernetes' API types, and for a few lists without one what its
/// validation keeps unique. Of several fields the first must be there.
const KEYS: &[(&str, &[&[&str]])] = &[
    ("conditions", &[&["type"]]),
    ("containers", &[&["name"]]),
    ("env", &[&["name"]]),
    ("ephemeralContainers", &[&["name"]]),
    ("hostAliases", &[&["ip"]]),
    ("imagePullSecrets", &[&["name"]]),
    ("initContainers", &[&["name"]]),
    ("items", &[&["key"]]),
    ("listeners", &[&["name"]]),
    ("ownerReferences", &[&["uid"]]),
    ("podIPs", &[&["ip"]]),
    ("ports", &[&["containerPort", "protocol"], &["port", "protocol"], &["name"]]),
    ("resourceClaims", &[&["name"]]),
    ("secrets", &[&["name"]]),
    ("subjects", &[&["name", "kind", "namespace"]]),
    ("topologySpreadConstraints", &[&["topologyKey", "whenUnsatisfiable"]]),
    ("versions", &[&["name"]]),
    ("volumeDevices", &[&["devicePath"]]),
    ("volumeMounts", &[&["mountPath"]]),
    ("volumes", &[&["name"]]),
    ("webhooks", &[&["name"]]),
];

/// The key of an item: names and texts of its fields.
pub(super) type ItemKey = Vec<(BString, BString)>;

/// The keys of the items of two lists in the field `field`; `None` when the items of one of them
/// cannot be told apart.
pub(super) fn item_keys(
    field: &BStr,
    old: &[Value],
    new: &[Value],
) -> Option<(Vec<ItemKey>, Vec<ItemKey>)> {
    let (_, candidates) = KEYS.iter().find(|(name, _)| field == name.as_bytes())?;
    candidates.iter().find_map(|names| Some((keys_of(names, old)?, keys_of(names, new)?)))
}

fn keys_of(names: &[&str], items: &[Value]) -> Option<Vec<ItemKey>> {
    let keys: Vec<ItemKey> = items.iter().map(|item| key_of(names, item)).collect::<Option<_>>()?;
    let mut sorted: Vec<&ItemKey> = keys.iter().collect();
    sorted.sort();
    let unique = sorted.windows(2).all(|pair| pair.first() != pair.last());
    unique.then_some(keys)
}

fn key_of(names: &[&str], item: &Value) -> Option<ItemKey> {
    item.as_map()?;
    let mut key = ItemKey::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let text = match item.get(name) {
            Some(value) => key_text(value)?,
            None if at == 0 => return None,
            None => BString::default(),
        };
        key.push(((*name).into(), text));
    }
    Some(key)
}
