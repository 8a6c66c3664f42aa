//! Bringing dependencies into `charts/` (`pkg/downloader/manager.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use helm_rs::chart::{Chart, Dependency, Limits, Warning, load, load_directory};
use helm_rs::gotext::quote;
use helm_rs::semver::{Constraint, Version};
use helm_rs::{error_chain, gopath};

use super::{DependencyError, local_folder, lock};
use crate::download::{
    Access, DownloadError, Downloader, TIMEOUT, Wanted, find_in_repository, update_index,
};
use crate::files::{self, FileError};
use crate::index::Index;
use crate::package;
use crate::repositories::{Entry, Repositories, index_file};
use crate::unfinished::Unfinished;
use crate::url;

/// What the names of repositories begin with that only an address is known of.
const UNMANAGED: &str = "helm-manager-";

/// What brings a chart's dependencies together.
pub struct Manager<'a> {
    /// The chart's folder.
    pub chart: &'a Path,
    /// What downloads.
    pub downloads: Downloader<'a>,
    /// Whether the indexes in the cache are new enough.
    pub skip_refresh: bool,
    /// The time of day, RFC 3339, for the lock.
    pub now_text: &'a str,
    /// What charts may cost.
    pub limits: Limits,
    /// Whether to tell more.
    pub debug: bool,
    /// Takes what is told on standard output, in whole lines.
    pub out: &'a mut dyn FnMut(&str),
    /// Takes what registries say on standard error.
    pub messages: &'a mut String,
    /// Takes what Helm would log.
    pub warnings: &'a mut Vec<Warning>,
}

/// Where a dependency is, and how it is asked for.
struct Place {
    url: String,
    digest: String,
    access: Access,
}

impl Manager<'_> {
    fn load_chart(&mut self) -> Result<Chart, DependencyError> {
        let path = self.chart;
        let about = fs::metadata(path).map_err(|error| DependencyError::NoChart {
            path: path.to_owned(),
            source: FileError::new("stat", path, error),
        })?;
        if !about.is_dir() {
            return Err(DependencyError::Packed);
        }
        Ok(load_directory(path, &self.limits, self.warnings)?)
    }

    /// Brings together what the lock says; without a lock, what fits (`Build`).
    ///
    /// # Errors
    /// [`DependencyError`]. `charts/` is as it was unless everything was fetched.
    pub fn build(&mut self) -> Result<(), DependencyError> {
        let chart = self.load_chart()?;
        let Some(lock) = chart.lock else { return self.update() };
        let mut wanted = chart.metadata.dependencies.unwrap_or_default();
        let is_v1 = chart.metadata.api_version == "v1";
        let former = lock::former_digest(&wanted)?;
        self.resolve_names(&mut wanted)?;
        if lock::digest(&wanted, lock.dependencies.as_deref())? != lock.digest {
            let out_of_sync = |lock, file| DependencyError::OutOfSync { lock, file };
            if !is_v1 {
                return Err(out_of_sync("Chart.lock", "Chart.yaml"));
            }
            self.warnings.push(Warning {
                origin: "manager.go:122",
                message:
                    "warning: a valid Helm v3 hash was not found. Checking against Helm v2 hash..."
                        .to_owned(),
            });
            if former != lock.digest {
                return Err(out_of_sync("requirements.lock", "requirements.yaml"));
            }
        }
        let mut chosen = lock.dependencies.unwrap_or_default();
        self.check_known(&chosen)?;
        if !self.skip_refresh {
            self.update_known()?;
        }
        self.download_all(&mut chosen)
    }

    /// Brings together what fits, and locks it (`Update`).
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn update(&mut self) -> Result<(), DependencyError> {
        let chart = self.load_chart()?;
        let Some(mut wanted) = chart.metadata.dependencies else { return Ok(()) };
        let mut names = self.resolve_names(&mut wanted)?;
        self.update_unknown(&mut names, &wanted)?;
        if !self.skip_refresh {
            self.update_known()?;
        }
        let mut new = self.resolve(&wanted, &names)?;
        let mut chosen = new.dependencies.take().unwrap_or_default();
        self.download_all(&mut chosen)?;
        // Packing may have found another version.
        new.digest = lock::digest(&wanted, Some(&chosen))?;
        new.dependencies = Some(chosen);
        if chart.lock.is_some_and(|old| old.digest == new.digest) {
            return Ok(());
        }
        lock::write(self.chart, &new, chart.metadata.api_version == "v1")
    }

    fn known(&self) -> Result<Repositories, DependencyError> {
        Ok(Repositories::read_or_none(&self.downloads.settings.repository_config)?)
    }

    /// The names of the dependencies' repositories, by the dependencies' names; aliases become
    /// addresses (`resolveRepoNames`).
    fn resolve_names(
        &mut self,
        wanted: &mut [Dependency],
    ) -> Result<BTreeMap<String, String>, DependencyError> {
        let known = self.known()?;
        let mut names = BTreeMap::new();
        let mut missing = Vec::new();
        for dependency in wanted {
            let repository = dependency.repository.clone();
            if repository.is_empty() {
                continue;
            }
            if repository.starts_with("file://") {
                local_folder(&repository, self.chart)?;
                if self.debug {
                    (self.out)(&format!("Repository from local path: {repository}\n"));
                }
            }
            if repository.starts_with("file://") || url::is_oci(&repository) {
                names.insert(dependency.name.clone(), repository);
                continue;
            }
            let alias = repository.strip_prefix('@').or_else(|| repository.strip_prefix("alias:"));
            let entry = known.entries.iter().find(|entry| {
                alias == Some(entry.name.as_str()) || url::equal(&entry.url, &repository)
            });
            match entry {
                Some(entry) => {
                    if alias == Some(entry.name.as_str()) {
                        dependency.repository.clone_from(&entry.url);
                    }
                    names.insert(dependency.name.clone(), entry.name.clone());
                }
                None if url::is_request(&repository) => {
                    names.insert(repository.clone(), repository);
                }
                None => missing.push(repository),
            }
        }
        if missing.is_empty() {
            return Ok(names);
        }
        let mut advice = "Please add them via 'helm repo add'".to_owned();
        let is_bare = |name: &String| {
            !(name.contains("//") || name.starts_with('@') || name.starts_with("alias:"))
        };
        if missing.iter().any(is_bare) {
            advice += "\nNote that repositories must be URLs or aliases. For example, to refer to the \"example\"\nrepository, use \"https://charts.example.com/\" or \"@example\" instead of\n\"example\". Don't forget to add the repo, too ('helm repo add').";
        }
        Err(DependencyError::NoRepository { names: missing.join(", "), advice })
    }

    /// Every repository of a lock has to be known (`hasAllRepos`).
    fn check_known(&self, chosen: &[Dependency]) -> Result<(), DependencyError> {
        let known = self.known()?;
        let is_known = |repository: &str| {
            let repository = repository.strip_suffix('/').unwrap_or(repository);
            known.entries.iter().any(|entry| url::equal(&entry.url, repository))
        };
        let missing: Vec<&str> = chosen
            .iter()
            .map(|dependency| dependency.repository.as_str())
            .filter(|r| !(r.is_empty() || r.starts_with("file://") || url::is_oci(r)))
            .filter(|repository| !is_known(repository))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(DependencyError::NoRepository {
            names: missing.join(", "),
            advice: "Please add the missing repos via 'helm repo add'".to_owned(),
        })
    }

    /// Fetches the indexes of repositories that only an address is known of
    /// (`ensureMissingRepos`).
    fn update_unknown(
        &mut self,
        names: &mut BTreeMap<String, String>,
        wanted: &[Dependency],
    ) -> Result<(), DependencyError> {
        let mut entries = Vec::new();
        for dependency in wanted {
            if dependency.repository.is_empty() || names.contains_key(&dependency.name) {
                continue;
            }
            let url = dependency.repository.clone();
            let name = format!("{UNMANAGED}{}", crate::digest(url.as_bytes()));
            names.insert(dependency.name.clone(), name.clone());
            entries.push(Entry { name, url, ..Entry::default() });
        }
        if !self.skip_refresh && !entries.is_empty() {
            (self.out)("Getting updates for unmanaged Helm repositories...\n");
            self.update_all(&entries)?;
        }
        Ok(())
    }

    /// Fetches the indexes of all known repositories (`UpdateRepositories`).
    fn update_known(&mut self) -> Result<(), DependencyError> {
        let entries = self.known()?.entries;
        if !entries.is_empty() {
            (self.out)("Hang tight while we grab the latest from your chart repositories...\n");
            self.update_all(&entries)?;
            (self.out)("Update Complete. ⎈Happy Helming!⎈\n");
        }
        Ok(())
    }

    /// One that cannot be reached is told and no error, as in Helm; one that is no address is.
    fn update_all(&mut self, entries: &[Entry]) -> Result<(), DependencyError> {
        for entry in entries {
            let Downloader { transport, settings, .. } = &self.downloads;
            let result = update_index(*transport, settings, entry, TIMEOUT, self.warnings);
            let shown = url::shown(&entry.url);
            let named =
                if entry.name.starts_with(UNMANAGED) { quote(&shown) } else { quote(&entry.name) };
            match result {
                Ok(()) => {
                    (self.out)(&format!(
                        "...Successfully got an update from the {named} chart repository\n"
                    ));
                }
                Err(source @ (DownloadError::Address { .. } | DownloadError::Protocol { .. })) => {
                    return Err(DependencyError::Download { url: shown, source: Box::new(source) });
                }
                Err(error) => {
                    let place = if entry.name.starts_with(UNMANAGED) {
                        named
                    } else {
                        format!("{named} chart repository ({shown})")
                    };
                    let tail = if place.ends_with(')') { "" } else { " chart repository" };
                    let why = error_chain(&error);
                    (self.out)(&format!(
                        "...Unable to get an update from the {place}{tail}:\n\t{why}\n"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Fetches all dependencies into a folder of its own, then moves them into `charts/`
    /// (`downloadAll`).
    fn download_all(&mut self, chosen: &mut [Dependency]) -> Result<(), DependencyError> {
        let indexes = self.indexes()?;
        let charts = self.chart.join("charts");
        match fs::metadata(&charts) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => return Err(DependencyError::NotFolder { path: charts }),
            Err(_) => files::make_folder(&charts)?,
        }
        let (half, _unfinished) = Unfinished::folder("tmpcharts-", self.chart)
            .map_err(|error| FileError::new("mkdir", self.chart, error))?;
        (self.out)(&format!("Saving {} charts\n", chosen.len()));
        let result = self.fetch_all(chosen, &indexes, half.path(), &charts);
        if let Err(error) = result {
            (self.out)(&format!("Save error occurred:  {}\n", error_chain(&error)));
            return Err(error);
        }
        self.move_all(chosen, half.path(), &charts)
    }

    fn fetch_all(
        &mut self,
        chosen: &mut [Dependency],
        indexes: &[(Entry, Index)],
        half: &Path,
        charts: &Path,
    ) -> Result<(), DependencyError> {
        let mut fetched = BTreeSet::new();
        for dependency in chosen {
            if dependency.repository.is_empty() {
                self.check_local(dependency, charts)?;
                continue;
            }
            if dependency.repository.starts_with("file://") {
                if self.debug {
                    let (name, repository) = (&dependency.name, &dependency.repository);
                    (self.out)(&format!("Archiving {name} from repo {repository}\n"));
                }
                dependency.version = self.pack_local(dependency, half)?;
                continue;
            }
            let place = self.place(dependency, indexes).map_err(|source| {
                DependencyError::NotFound { url: String::new(), source: Box::new(source) }
            })?;
            let (name, repository) = (&dependency.name, url::shown(&dependency.repository));
            if !fetched.insert(place.url.clone()) {
                (self.out)(&format!("Already downloaded {name} from repo {repository}\n"));
                continue;
            }
            (self.out)(&format!("Downloading {name} from repo {repository}\n"));
            let is_oci = url::is_oci(&place.url);
            let version = if is_oci { dependency.version.clone() } else { String::new() };
            let wanted = Wanted { reference: place.url, version, digest: place.digest };
            let done = self
                .downloads
                .download(&wanted, place.access, half, self.messages, self.warnings)
                .map_err(|source| DependencyError::Download {
                    url: url::shown(&wanted.reference),
                    source: Box::new(source),
                })?;
            if !done.notes.is_empty() {
                (self.out)(&done.notes);
            }
        }
        Ok(())
    }

    /// A dependency without repository has to be in `charts/` already.
    fn check_local(
        &mut self,
        dependency: &Dependency,
        charts: &Path,
    ) -> Result<(), DependencyError> {
        let name = &dependency.name;
        (self.out)(&format!(
            "Dependency {name} did not declare a repository. Assuming it exists in the charts directory\n"
        ));
        let path = charts.join(name);
        let chart = load_directory(&path, &self.limits, self.warnings)
            .map_err(|source| DependencyError::LoadLocal { path, source })?;
        let version = chart.metadata.version;
        let range = Constraint::parse(&dependency.version)
            .map_err(|source| DependencyError::Range { name: name.clone(), source })?;
        let parsed = Version::parse(&version).map_err(|source| DependencyError::Version {
            name: name.clone(),
            version: dependency.version.clone(),
            source,
        })?;
        if range.check(&parsed) {
            return Ok(());
        }
        let (name, range) = (name.clone(), dependency.version.clone());
        Err(DependencyError::Unsatisfied { name, version, range })
    }

    /// Packs a dependency out of a folder (`tarFromLocalDir`); its version is the answer.
    fn pack_local(
        &mut self,
        dependency: &Dependency,
        half: &Path,
    ) -> Result<String, DependencyError> {
        let folder = local_folder(&dependency.repository, self.chart)?;
        let chart = load_directory(&folder, &self.limits, self.warnings)?;
        let name = dependency.name.clone();
        let range = Constraint::parse(&dependency.version)
            .map_err(|source| DependencyError::Range { name: name.clone(), source })?;
        let version = chart.metadata.version.clone();
        let parsed =
            Version::parse(&version).map_err(|source| DependencyError::Package(source.into()))?;
        if !range.check(&parsed) {
            return Err(DependencyError::NoVersion { name });
        }
        package::save(&chart, half, self.downloads.now)?;
        Ok(version)
    }

    /// The known repositories with their indexes (`loadChartRepositories`).
    fn indexes(&mut self) -> Result<Vec<(Entry, Index)>, DependencyError> {
        let cache = self.downloads.settings.repository_cache.clone();
        let entries = self.known()?.entries;
        entries
            .into_iter()
            .map(|entry| {
                let index = Index::read(&cache.join(index_file(&entry.name)), self.warnings)?;
                Ok((entry, index))
            })
            .collect()
    }

    /// Where a dependency is (`findChartURL`).
    fn place(
        &mut self,
        dependency: &Dependency,
        indexes: &[(Entry, Index)],
    ) -> Result<Place, DependencyError> {
        let Dependency { name, version, repository, .. } = dependency;
        if url::is_oci(repository) {
            let url = format!("{repository}/{name}");
            return Ok(Place { url, digest: String::new(), access: Access::default() });
        }
        let known = indexes.iter().find(|(entry, _)| url::equal(repository, &entry.url));
        if let Some((entry, index)) = known {
            let versions =
                index.entries.get(name).ok_or(DependencyError::NoEntry("entry not found"))?;
            let found = versions.iter().find_map(|listed| {
                let first = listed.urls.as_ref()?.first()?;
                let fits = version.is_empty() || same_version(version, &listed.metadata.version);
                fits.then_some((first, &listed.digest))
            });
            let (first, digest) = found.ok_or(DependencyError::NoEntry("no matching version"))?;
            let url = url::normalize(repository, first)?;
            return Ok(Place { url, digest: digest.clone(), access: Access::of(entry) });
        }
        let access = Access::default();
        let Downloader { transport, settings, .. } = &self.downloads;
        let found = find_in_repository(
            *transport,
            settings,
            repository,
            &access,
            name,
            version,
            self.warnings,
        )
        .map_err(|source| DependencyError::NotThere {
            name: name.clone(),
            repository: url::shown(repository),
            source: Box::new(source),
        })?;
        Ok(Place { url: found.reference, digest: found.digest, access })
    }

    /// Moves what was fetched into `charts/`, and takes out what is no longer asked for
    /// (`safeMoveDeps`). Every archive is read before the first is moved.
    fn move_all(
        &mut self,
        chosen: &[Dependency],
        half: &Path,
        charts: &Path,
    ) -> Result<(), DependencyError> {
        let local: BTreeSet<&str> = chosen
            .iter()
            .filter(|dependency| dependency.repository.is_empty())
            .map(|dependency| dependency.name.as_str())
            .collect();
        let before = names(charts)?;
        let new: Vec<String> =
            names(half)?.into_iter().filter(|name| half.join(name).is_file()).collect();
        // Signatures are looked at and not kept, as in Helm.
        let archives: Vec<&String> =
            new.iter().filter(|name| gopath::ext(name) != ".prov").collect();
        for file in &archives {
            load(&half.join(file), &self.limits, self.warnings)
                .map_err(|source| DependencyError::NotChart { file: (*file).clone(), source })?;
        }
        for name in archives {
            let (from, to) = (half.join(name), charts.join(name));
            fs::rename(&from, &to).map_err(|error| FileError::new("rename", &from, error))?;
        }
        (self.out)("Deleting outdated charts\n");
        for name in before.iter().filter(|name| !new.contains(name)) {
            let path = charts.join(name);
            if path.is_dir() {
                continue;
            }
            match load(&path, &self.limits, self.warnings) {
                Err(error) => (self.out)(&format!(
                    "Could not verify {} for deletion: {} (Skipping)\n",
                    path.display(),
                    error_chain(&error)
                )),
                Ok(chart) if local.contains(chart.name()) => {}
                Ok(_) => {
                    fs::remove_file(&path)
                        .map_err(|error| FileError::new("remove", &path, error))?;
                }
            }
        }
        Ok(())
    }
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>, DependencyError> {
    let entries = fs::read_dir(folder).map_err(|error| FileError::new("open", folder, error))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry: fs::DirEntry| PathBuf::from(entry.file_name()).to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// `versionEquals`.
fn same_version(a: &str, b: &str) -> bool {
    match (Version::parse(a), Version::parse(b)) {
        (Ok(a), Ok(b)) => a.compare(&b).is_eq(),
        (Err(_), _) => a == b,
        (Ok(_), Err(_)) => false,
    }
}
