//! From ranges to versions (`internal/resolver/resolver.go`).

use std::collections::BTreeMap;

use helm_rs::chart::{Dependency, Lock, load_directory};
use helm_rs::gotext::quote;
use helm_rs::semver::{Constraint, Version};

use super::manager::Manager;
use super::{DependencyError, local_folder, lock};
use crate::index::Index;
use crate::reference::Reference;
use crate::registry::RegistryError;
use crate::repositories::index_file;
use crate::url;

impl Manager<'_> {
    /// Chooses a version of each dependency (`Resolve`). `names` has the repositories' names by the
    /// dependencies'.
    pub(super) fn resolve(
        &mut self,
        wanted: &[Dependency],
        names: &BTreeMap<String, String>,
    ) -> Result<Lock, DependencyError> {
        let mut chosen = Vec::with_capacity(wanted.len());
        let mut missing = Vec::new();
        for dependency in wanted {
            let range = Constraint::parse(&dependency.version).map_err(|source| {
                DependencyError::Range { name: quote(&dependency.name), source }
            })?;
            let version = self.choose(dependency, &range, names)?;
            let Some(version) = version else {
                let (name, repository) = (quote(&dependency.name), quote(&dependency.repository));
                let range = quote(&dependency.version);
                missing.push(format!("{name} (repository {repository}, version {range})"));
                continue;
            };
            let mut locked = Dependency::default();
            locked.name.clone_from(&dependency.name);
            locked.repository.clone_from(&dependency.repository);
            locked.version = version;
            chosen.push(locked);
        }
        if !missing.is_empty() {
            let (count, names) = (missing.len(), missing.join(", "));
            return Err(DependencyError::NoVersions { count, names });
        }
        Ok(Lock {
            generated: self.now_text.to_owned(),
            digest: lock::digest(wanted, Some(&chosen))?,
            dependencies: Some(chosen),
        })
    }

    /// The version of a dependency; `None` when none fits.
    fn choose(
        &mut self,
        dependency: &Dependency,
        range: &Constraint,
        names: &BTreeMap<String, String>,
    ) -> Result<Option<String>, DependencyError> {
        let repository = &dependency.repository;
        let as_asked = || Ok(Some(dependency.version.clone()));
        if repository.is_empty() {
            local_folder(&format!("charts/{}", dependency.name), self.chart)?;
            return as_asked();
        }
        if repository.starts_with("file://") {
            let folder = local_folder(repository, self.chart)?;
            let chart = load_directory(&folder, &self.limits, self.warnings)?;
            let version = chart.metadata.version;
            let fits = Version::parse(&version).is_ok_and(|parsed| range.check(&parsed));
            return Ok(fits.then_some(version));
        }
        let Some(name) = names.get(&dependency.name).filter(|name| !name.is_empty()) else {
            // No repository of a name: the address alone has to do.
            return as_asked();
        };
        if url::is_oci(repository) {
            return self.choose_tag(dependency, range);
        }
        let file = self.downloads.settings.repository_cache.join(index_file(name));
        let index = Index::read(&file, self.warnings)
            .map_err(|source| DependencyError::NoIndex { name: name.clone(), source })?;
        let versions = index.entries.get(&dependency.name).ok_or_else(|| {
            DependencyError::NotInRepository {
                name: dependency.name.clone(),
                repository: repository.clone(),
            }
        })?;
        let mut listed = versions
            .iter()
            .filter(|version| version.urls.as_ref().is_some_and(|urls| !urls.is_empty()))
            .map(|version| version.metadata.version.clone());
        Ok(listed.find(|v| Version::parse(v).is_ok_and(|parsed| range.check(&parsed))))
    }

    /// The tag of a dependency in a registry; without a fitting one, Helm takes the empty version or
    /// the one that was asked for.
    fn choose_tag(
        &self,
        dependency: &Dependency,
        range: &Constraint,
    ) -> Result<Option<String>, DependencyError> {
        if Version::parse(&dependency.version).is_ok() {
            return Ok(Some(dependency.version.clone()));
        }
        let repository = &dependency.repository;
        let fail = |source| DependencyError::NoTags { repository: repository.clone(), source };
        let reference = Reference::parse(&format!("{repository}/{}", dependency.name))
            .map_err(|error| fail(RegistryError::from(error)))?;
        let tags = self.downloads.registry.tags(&reference).map_err(fail)?;
        let fits = |tag: &&String| Version::parse(tag).is_ok_and(|version| range.check(&version));
        let found = tags.iter().find(fits).cloned();
        Ok(Some(found.unwrap_or_else(|| dependency.version.clone())))
    }
}
