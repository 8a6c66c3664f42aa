//! A container's environment, resolved as a kubelet does
//! (`pkg/kubelet/kubelet_pods.go`, `makeEnvironmentVariables`), service links left out.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};

use super::objects::{Missing, Objects, key};

/// Environment variables by name.
pub(super) type Environment = BTreeMap<String, String>;

/// What the downward API can tell beside the pod object itself.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) pod_address: String,
    pub(super) node_address: String,
    pub(super) api_server: SocketAddr,
}

/// Resolves the environment of one container.
pub(super) async fn resolve(
    objects: &mut Objects,
    pod: &Pod,
    container: &Container,
    facts: &Facts,
) -> Result<Environment, Missing> {
    let mut environment = Environment::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let data = if let Some(from) = &source.config_map_ref {
            objects.config_map(&from.name, from.optional.unwrap_or(false)).await?
        } else if let Some(from) = &source.secret_ref {
            objects.secret(&from.name, from.optional.unwrap_or(false)).await?
        } else {
            None
        };
        for (name, value) in data.unwrap_or_default() {
            environment.insert(format!("{prefix}{name}"), text(value));
        }
    }
    environment.insert("KUBERNETES_SERVICE_HOST".to_owned(), facts.api_server.ip().to_string());
    environment.insert("KUBERNETES_SERVICE_PORT".to_owned(), facts.api_server.port().to_string());
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (_, Some(source)) => value_from(objects, pod, container, facts, source).await?,
            (Some(value), None) => Some(expand(value, &environment)),
            (None, None) => Some(String::new()),
        };
        if let Some(value) = value {
            environment.insert(variable.name.clone(), value);
        }
    }
    Ok(environment)
}

async fn value_from(
    objects: &mut Objects,
    pod: &Pod,
    container: &Container,
    facts: &Facts,
    source: &EnvVarSource,
) -> Result<Option<String>, Missing> {
    if let Some(from) = &source.config_map_key_ref {
        let optional = from.optional.unwrap_or(false);
        let data = objects.config_map(&from.name, optional).await?;
        return Ok(key("ConfigMap", &from.name, data, &from.key, optional)?.map(text));
    }
    if let Some(from) = &source.secret_key_ref {
        let optional = from.optional.unwrap_or(false);
        let data = objects.secret(&from.name, optional).await?;
        return Ok(key("Secret", &from.name, data, &from.key, optional)?.map(text));
    }
    if let Some(from) = &source.field_ref {
        return field(pod, facts, &from.field_path).map(Some);
    }
    if let Some(from) = &source.resource_field_ref {
        return Ok(Some(resource(container, &from.resource)));
    }
    Err(Missing("this source of an environment variable is not supported".to_owned()))
}

/// The value of a downward API path.
pub(super) fn field(pod: &Pod, facts: &Facts, path: &str) -> Result<String, Missing> {
    let metadata = &pod.metadata;
    let spec = pod.spec.as_ref();
    if let Some((map, name)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let map = match map {
            "metadata.labels" => metadata.labels.as_ref(),
            "metadata.annotations" => metadata.annotations.as_ref(),
            _ => return Err(Missing(format!("unsupported field path {path}"))),
        };
        return Ok(map.and_then(|map| map.get(name)).cloned().unwrap_or_default());
    }
    let value = match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "metadata.labels" => Some(lines(metadata.labels.as_ref())),
        "metadata.annotations" => Some(lines(metadata.annotations.as_ref())),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.podIP" | "status.podIPs" => Some(facts.pod_address.clone()),
        "status.hostIP" | "status.hostIPs" => Some(facts.node_address.clone()),
        _ => return Err(Missing(format!("unsupported field path {path}"))),
    };
    Ok(value.unwrap_or_default())
}

/// Labels or annotations as the downward API writes them into a file.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let line = |(key, value): (&String, &String)| format!("{key}={value:?}");
    map.into_iter().flatten().map(line).collect::<Vec<_>>().join("\n")
}

/// A request or limit as written; "0" when there is none.
pub(super) fn resource(container: &Container, path: &str) -> String {
    let resources = container.resources.as_ref();
    let quantity = path.split_once('.').and_then(|(kind, name)| {
        let list = match kind {
            "limits" => resources?.limits.as_ref()?,
            _ => resources?.requests.as_ref()?,
        };
        list.get(name).map(|quantity| quantity.0.clone())
    });
    quantity.unwrap_or_else(|| "0".to_owned())
}

/// Replaces `$(NAME)`; `$$` is a dollar sign; an unknown name stays as it is.
///
/// Mirrors `third_party/forked/golang/expansion/expand.go`, `Expand`.
pub(super) fn expand(text: &str, environment: &Environment) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        output.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            output.push('$');
            rest = after;
        } else if let Some((name, after)) = after.strip_prefix('(').and_then(|t| t.split_once(')'))
        {
            match environment.get(name) {
                Some(value) => output.push_str(value),
                None => output.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            output.push('$');
            rest = after;
        }
    }
    output.push_str(rest);
    output
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_known_names_only() {
        let environment = Environment::from([("A".to_owned(), "x".to_owned())]);
        assert_eq!(expand("$(A)-$(B)-$$(A)-$A$", &environment), "x-$(B)-$(A)-$A$");
        assert_eq!(expand("$(A", &environment), "$(A");
    }
}
