//! The chart that a user names: a folder, an archive, a pinned chart, a chart in a repository or a
//! registry.

use std::path::{Path, PathBuf};

use helm_repo::download::{Verify, Wanted, find_in_repository};
use helm_repo::fetch::PLAIN_HTTP;
use helm_repo::provenance;
use helm_rs::chart::{Chart, Limits, Warning};
use helm_rs::error_chain;
use helm_rs::gotext::quote;

use super::dependency::update_missing;
use super::options::{LimitFlags, is_remote, load_error, print_warnings};
use super::source::{ChartFlags, downloader, seconds, transport};
use crate::cache;
use crate::commands::Context;
use crate::error::CommandError;

impl ChartFlags {
    /// Loads the chart that the user named (`ChartPathOptions.LocateChart`). `update` brings in
    /// dependencies that are missing, if it is a folder.
    pub(crate) fn load(
        &self,
        name: &str,
        limits: &LimitFlags,
        update: bool,
        context: &mut Context<'_>,
    ) -> Result<Chart, CommandError> {
        let limits = limits.limits();
        let mut warnings = Vec::new();
        let name = name.trim();
        let chart = match self.locate(name, &limits, context, &mut warnings) {
            Ok(Some(path)) => {
                context.ui.debug(format!("chart path: {}", path.display()));
                self.load_path(&path, &limits, update, context, &mut warnings)
            }
            Ok(None) => self.load_pinned(name, &limits, context, &mut warnings),
            Err(error) => Err(error),
        };
        print_warnings(context.ui, &warnings);
        chart
    }

    fn load_path(
        &self,
        path: &Path,
        limits: &Limits,
        update: bool,
        context: &mut Context<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Chart, CommandError> {
        let load = |warnings: &mut Vec<Warning>| {
            helm_rs::chart::load(path, limits, warnings).map_err(|error| load_error(&error))
        };
        let chart = load(warnings)?;
        if !update || helm_rs::values::missing_dependencies(&chart).is_empty() {
            return Ok(chart);
        }
        update_missing(path, self, limits, context)?;
        load(warnings)
    }

    /// The path of the chart, which is downloaded into the cache if need be; none for the name of a
    /// pinned chart.
    fn locate(
        &self,
        name: &str,
        limits: &Limits,
        context: &mut Context<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<PathBuf>, CommandError> {
        let path = Path::new(name);
        if path.exists() {
            if let Some(repository) = self.repo.as_deref().filter(|url| !url.is_empty()) {
                context.ui.warning(format!(
                    "install.go:759: WARN local chart found in current working directory. repository url ignored chart={name} repository={repository}"
                ));
            }
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            if self.verify {
                let keyring = self.keyring(context.environment);
                provenance::verify_chart(&path, &keyring, seconds(context.environment))
                    .map_err(|error| CommandError::new(error_chain(&error)))?;
            }
            return Ok(Some(path));
        }
        if name.starts_with(['.', '/']) {
            return Err(CommandError::new(format_args!("path {} not found", quote(name))));
        }
        if self.repo.is_none() && !name.contains('/') {
            return Ok(None);
        }
        let settings = self.files.settings(context.environment);
        helm_repo::files::make_folder(&settings.repository_cache)
            .map_err(|error| CommandError::new(error_chain(&error)))?;
        let folder = settings.repository_cache;
        let verify = if self.verify { Verify::Always } else { Verify::Never };
        let done = self.download(name, &folder, verify, limits, context, warnings)?;
        context.ui.result(&done.notes)?;
        Ok(Some(std::path::absolute(&done.path).unwrap_or(done.path)))
    }

    /// Downloads a chart of a repository or registry into a folder.
    pub(super) fn download(
        &self,
        name: &str,
        folder: &Path,
        verify: Verify,
        limits: &Limits,
        context: &mut Context<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<helm_repo::download::Downloaded, CommandError> {
        let settings = self.files.settings(context.environment);
        let (transport, keyring) = (transport(), self.keyring(context.environment));
        let mut registry = self.server.registry(&*transport, &settings);
        let mut access = self.server.access(self.pass_credentials);
        let version = self.wanted_version();
        let mut wanted = Wanted {
            reference: name.to_owned(),
            version: version.to_owned(),
            digest: String::new(),
        };
        if let Some(repository) = self.repo.as_deref().filter(|url| !url.is_empty()) {
            wanted = find_in_repository(
                &*transport,
                &settings,
                repository,
                &access,
                name,
                version,
                warnings,
            )
            .map_err(|error| failed(&error, name))?;
            repository.clone_into(&mut access.credentials.repository);
        }
        // What is given for a repository is for its server alone, and a registry that its index
        // names is another.
        if !name.starts_with("oci://") {
            registry.forget_login();
        }
        let downloads =
            downloader(&*transport, &settings, &registry, &keyring, verify, limits, context);
        let mut messages = String::new();
        let done = downloads.download(&wanted, access, folder, &mut messages, warnings);
        // Where an index named the registry, Helm does not say that it was asked.
        if name.starts_with("oci://") {
            tell(&messages, context);
        }
        done.map_err(|error| failed(&error, name))
    }

    fn load_pinned(
        &self,
        name: &str,
        limits: &Limits,
        context: &mut Context<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Chart, CommandError> {
        let pins = cache::pins()?;
        let version = self.version.as_deref();
        let Some(pin) = pins.find(name, version) else {
            if pins.iter().any(|pin| pin.name == name) {
                let version = version.unwrap_or_default();
                let name = quote(name);
                return Err(CommandError::new(format_args!(
                    "chart {name} {version} is not pinned"
                ))
                .hint("see the pinned charts: ichor chart pull --list"));
            }
            return Err(CommandError::new(format_args!(
                "non-absolute URLs should be in form of repo_name/path_to_chart, got: {name}"
            ))
            .hint("pass a chart's folder or archive, or the name of a pinned chart"));
        };
        if self.verify {
            return Err(CommandError::new("a pinned chart has a digest and no signature")
                .hint("leave --verify out: the digest is checked every time"));
        }
        let resolved = cache::resolve(pin, limits.archive_size, context)?;
        helm_rs::chart::load_archive(&resolved.bytes, limits, warnings)
            .map_err(|error| load_error(&error))
    }
}

/// What registries say, on standard error as in Helm.
pub(super) fn tell(messages: &str, context: &mut Context<'_>) {
    if let Some(messages) = messages.strip_suffix('\n') {
        context.ui.note(messages);
    }
}

/// An error of a download, with what may help.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static), name: &str) -> CommandError {
    let text = error_chain(error);
    let known = text.starts_with("repo ") || text.contains("try 'helm repo update'");
    let plain = plain_http_hint(&text);
    let shown = CommandError::new(text);
    if let Some(hint) = plain {
        return shown.hint(hint);
    }
    if known && !is_remote(name) {
        return shown.hint("see what is known: ichor chart repo list, ichor chart repo update");
    }
    shown
}

/// What helps where a server speaks plain HTTP and was asked in HTTPS; a registry is asked below `/v2/`.
fn plain_http_hint(text: &str) -> Option<&'static str> {
    let (before, _) = text.split_once(PLAIN_HTTP)?;
    Some(if before.contains("/v2/") {
        "the registry speaks plain HTTP: say --plain-http if its answers may be read and changed on the way"
    } else {
        "the server speaks plain HTTP: begin its address with http:// if its answers may be read and changed on the way"
    })
}
