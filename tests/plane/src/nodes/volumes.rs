//! A pod's volumes: whether everything required is there, and, for executed pods, as folders.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    KeyToPath, Pod, ProjectedVolumeSource, ServiceAccount, ServiceAccountTokenProjection, Volume,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::environment::{Facts, field};
use super::objects::{Data, Missing, Objects};

/// Path in the volume to content and file mode.
pub(super) type Files = BTreeMap<String, (Vec<u8>, u32)>;

/// What a volume comes to on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// A folder with these files.
    Files(Files),
    /// This machine's own file or folder.
    Host(PathBuf),
    /// An empty folder; also for kinds that have no meaning here.
    Empty,
}

/// Resolves one volume, tokens left out: those are asked for only when the pod executes.
pub(super) async fn resolve(
    objects: &mut Objects,
    pod: &Pod,
    volume: &Volume,
    facts: &Facts,
) -> Result<Content, Missing> {
    let mounted = |Missing(reason): Missing| {
        Missing(format!("MountVolume.SetUp failed for volume \"{}\" : {reason}", volume.name))
    };
    if let Some(source) = &volume.config_map {
        let optional = source.optional.unwrap_or(false);
        let data = objects.config_map(&source.name, optional).await.map_err(mounted)?;
        let mode = source.default_mode;
        return pick(data, source.items.as_ref(), mode, optional)
            .map(Content::Files)
            .map_err(mounted);
    }
    if let Some(source) = &volume.secret {
        let optional = source.optional.unwrap_or(false);
        let name = source.secret_name.as_deref().unwrap_or_default();
        let data = objects.secret(name, optional).await.map_err(mounted)?;
        let mode = source.default_mode;
        return pick(data, source.items.as_ref(), mode, optional)
            .map(Content::Files)
            .map_err(mounted);
    }
    if let Some(source) = &volume.projected {
        return projected(objects, pod, source, facts).await.map(Content::Files).map_err(mounted);
    }
    if let Some(source) = &volume.downward_api {
        let mut files = Files::new();
        for item in source.items.iter().flatten() {
            if let Some(reference) = &item.field_ref {
                let value = field(pod, facts, &reference.field_path).map_err(mounted)?;
                let mode = mode(item.mode.or(source.default_mode));
                files.insert(item.path.clone(), (value.into_bytes(), mode));
            }
        }
        return Ok(Content::Files(files));
    }
    if let Some(source) = &volume.host_path {
        return Ok(Content::Host(PathBuf::from(&source.path)));
    }
    Ok(Content::Empty)
}

async fn projected(
    objects: &mut Objects,
    pod: &Pod,
    source: &ProjectedVolumeSource,
    facts: &Facts,
) -> Result<Files, Missing> {
    let mut files = Files::new();
    for part in source.sources.iter().flatten() {
        if let Some(from) = &part.config_map {
            let optional = from.optional.unwrap_or(false);
            let data = objects.config_map(&from.name, optional).await?;
            files.extend(pick(data, from.items.as_ref(), source.default_mode, optional)?);
        }
        if let Some(from) = &part.secret {
            let optional = from.optional.unwrap_or(false);
            let data = objects.secret(&from.name, optional).await?;
            files.extend(pick(data, from.items.as_ref(), source.default_mode, optional)?);
        }
        for item in part.downward_api.iter().flat_map(|api| api.items.iter().flatten()) {
            if let Some(reference) = &item.field_ref {
                let value = field(pod, facts, &reference.field_path)?;
                let mode = mode(item.mode.or(source.default_mode));
                files.insert(item.path.clone(), (value.into_bytes(), mode));
            }
        }
    }
    Ok(files)
}

/// The files of a ConfigMap or Secret: all keys, or the chosen ones under their paths.
fn pick(
    data: Option<Data>,
    items: Option<&Vec<KeyToPath>>,
    default_mode: Option<i32>,
    optional: bool,
) -> Result<Files, Missing> {
    let mut data = data.unwrap_or_default();
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        let file = |(name, value)| (name, (value, mode(default_mode)));
        return Ok(data.into_iter().map(file).collect());
    };
    let mut files = Files::new();
    for item in items {
        match data.remove(&item.key) {
            Some(value) => {
                files.insert(item.path.clone(), (value, mode(item.mode.or(default_mode))));
            }
            None if optional => {}
            None => return Err(Missing(format!("references non-existent key: {}", item.key))),
        }
    }
    Ok(files)
}

fn mode(mode: Option<i32>) -> u32 {
    mode.and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644)
}

/// Asks for the tokens of a volume, bound to the pod, and adds them to its files.
pub(super) async fn add_tokens(
    client: &Client,
    pod: &Pod,
    volume: &Volume,
    files: &mut Files,
) -> Result<(), Missing> {
    let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    for projection in sources.filter_map(|part| part.service_account_token.as_ref()) {
        let token = request_token(client, pod, projection).await?;
        files.insert(projection.path.clone(), (token.into_bytes(), 0o600));
    }
    Ok(())
}

/// A token of the pod's ServiceAccount that dies with the pod, as a kubelet's token manager asks.
async fn request_token(
    client: &Client,
    pod: &Pod,
    projection: &ServiceAccountTokenProjection,
) -> Result<String, Missing> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: projection.audience.clone().map(|audience| vec![audience]),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            }),
            expiration_seconds: projection.expiration_seconds,
        }),
        ..TokenRequest::default()
    };
    let api = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    let answer = api
        .create_token_request(account.unwrap_or("default"), &PostParams::default(), &request)
        .await
        .map_err(|error| Missing(format!("failed to fetch token: {error}")))?;
    Ok(answer.status.and_then(|status| status.token).unwrap_or_default())
}

/// Writes files into a folder. Paths that lead out of it are left out; the API server refuses them.
pub(super) fn write(folder: &Path, files: &Files) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for (name, (content, mode)) in files {
        if name.starts_with('/') || name.split('/').any(|part| part == "..") {
            continue;
        }
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
    }
    Ok(())
}
