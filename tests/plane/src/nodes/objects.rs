//! The ConfigMaps and Secrets that a pod needs, as maps of bytes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};

/// Keys and values of a ConfigMap or Secret.
pub(super) type Data = BTreeMap<String, Vec<u8>>;

/// Something that a pod requires is not there; the text is what a kubelet's status would say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing(pub(super) String);

/// Reads objects of one namespace, each once.
pub(super) struct Objects {
    client: Client,
    namespace: String,
    config_maps: BTreeMap<String, Option<Data>>,
    secrets: BTreeMap<String, Option<Data>>,
}

impl Objects {
    pub(super) fn new(client: &Client, namespace: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            config_maps: BTreeMap::new(),
            secrets: BTreeMap::new(),
        }
    }

    /// A ConfigMap's data; `None` when it is optional and missing.
    pub(super) async fn config_map(
        &mut self,
        name: &str,
        optional: bool,
    ) -> Result<Option<Data>, Missing> {
        if !self.config_maps.contains_key(name) {
            let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
            let found = api.get_opt(name).await.map_err(|error| Missing(error.to_string()))?;
            let data = found.map(|map| {
                let text = map.data.unwrap_or_default().into_iter();
                let binary = map.binary_data.unwrap_or_default().into_iter();
                text.map(|(key, value)| (key, value.into_bytes()))
                    .chain(binary.map(|(key, value)| (key, value.0)))
                    .collect()
            });
            self.config_maps.insert(name.to_owned(), data);
        }
        present("configmap", name, optional, self.config_maps.get(name).cloned().flatten())
    }

    /// A Secret's data; `None` when it is optional and missing.
    pub(super) async fn secret(
        &mut self,
        name: &str,
        optional: bool,
    ) -> Result<Option<Data>, Missing> {
        if !self.secrets.contains_key(name) {
            let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
            let found = api.get_opt(name).await.map_err(|error| Missing(error.to_string()))?;
            let data = found.map(|secret| {
                let data = secret.data.unwrap_or_default().into_iter();
                data.map(|(key, value)| (key, value.0)).collect()
            });
            self.secrets.insert(name.to_owned(), data);
        }
        present("secret", name, optional, self.secrets.get(name).cloned().flatten())
    }
}

fn present(
    kind: &str,
    name: &str,
    optional: bool,
    data: Option<Data>,
) -> Result<Option<Data>, Missing> {
    if data.is_none() && !optional {
        return Err(Missing(format!("{kind} \"{name}\" not found")));
    }
    Ok(data)
}

/// One key of a ConfigMap or Secret.
pub(super) fn key(
    kind: &str,
    name: &str,
    data: Option<Data>,
    key: &str,
    optional: bool,
) -> Result<Option<Vec<u8>>, Missing> {
    let value = data.and_then(|mut data| data.remove(key));
    if value.is_none() && !optional {
        return Err(Missing(format!("couldn't find key {key} in {kind} {name}")));
    }
    Ok(value)
}
