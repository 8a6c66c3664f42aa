//! Filling the in-memory cluster from objects and files.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::state::{Key, meta, set};
use super::{MemoryCluster, defaults};
use crate::cluster::Kind;

/// Files nested deeper than this below the given folder are not read.
const DEPTH: usize = 16;
/// Bytes that one file may have.
const MAX_FILE: u64 = 1 << 30;

/// What cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file system.
    #[error("read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Text that is neither YAML nor JSON.
    #[error("{place}: {reason}")]
    Parse {
        /// The file and, in a file of several, the document from 1.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A thing that is no object, or of a kind that no resource and no CRD before it serves.
    #[error("{place}: {reason}")]
    Object {
        /// The file and, in a file of several, the document from 1.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

impl MemoryCluster {
    /// Takes in objects as they are: UIDs, versions, times and status are kept, what is missing
    /// is filled in. Lists are taken apart, CRDs come first. Namespaces that objects are in are made.
    ///
    /// # Errors
    /// [`LoadError::Object`] for the first one that is none or whose kind nobody serves.
    pub fn load(&self, objects: Vec<(String, Value)>) -> Result<usize, LoadError> {
        let mut flat = flat(objects);
        let rank = |object: &Value| match Kind::of(object).kind.as_str() {
            "CustomResourceDefinition" => 0,
            "Namespace" => 1,
            _ => 2,
        };
        flat.sort_by_key(|(_, object)| rank(object));
        let count = flat.len();
        for (place, object) in flat {
            self.load_one(&place, object)?;
        }
        Ok(count)
    }

    fn load_one(&self, place: &str, mut object: Value) -> Result<(), LoadError> {
        let fail = |reason: String| LoadError::Object { place: place.to_owned(), reason };
        let kind = Kind::of(&object);
        if !object.is_object() || kind.kind.is_empty() {
            return Err(fail("not a Kubernetes object".to_owned()));
        }
        let mut state = self.state();
        let resource = state.table.of_kind(&kind).cloned();
        let resource = resource.ok_or_else(|| {
            let Kind { kind: name, .. } = &kind;
            fail(format!("no matches for kind \"{name}\" in version \"{}\"", kind.api_version()))
        })?;
        let name = meta(&object, "name").to_owned();
        if name.is_empty() {
            return Err(fail(format!("a {} without a name", kind.kind)));
        }
        if resource.namespaced && meta(&object, "namespace").is_empty() {
            set(&mut object, "namespace", "default".into());
        }
        if !resource.namespaced {
            set(&mut object, "namespace", Value::Null);
        }
        if meta(&object, "uid").is_empty() {
            let uid = state.uid();
            set(&mut object, "uid", uid.into());
        }
        let time = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        if meta(&object, "creationTimestamp").is_empty() {
            set(&mut object, "creationTimestamp", time.clone().into());
        }
        let rule = super::table::generation(&resource);
        if rule != super::table::Generation::None
            && object.pointer("/metadata/generation").is_none()
        {
            set(&mut object, "generation", 1.into());
        }
        defaults::apply(&mut object);
        let namespace = meta(&object, "namespace").to_owned();
        let is_definition = kind.kind == "CustomResourceDefinition";
        let version = meta(&object, "resourceVersion").parse::<u64>().unwrap_or_default();
        let key = Key::new(&resource, &namespace, &name);
        if version > 0 {
            // Kept as it is; new versions come after all of them.
            state.version = state.version.max(version);
            if is_definition {
                state.table.add_definition(&object);
            }
            state.objects.insert(key, std::sync::Arc::new(object));
        } else {
            state.store(key, object, is_definition);
        }
        drop(state);
        if !namespace.is_empty() {
            self.make_namespace(&namespace)?;
        }
        Ok(())
    }

    fn make_namespace(&self, name: &str) -> Result<(), LoadError> {
        let key = Key {
            group: String::new(),
            plural: "namespaces".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        let there = self.state().get(&key).is_some();
        if there {
            return Ok(());
        }
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
        });
        self.load_one(name, object)
    }

    /// Takes in a text of YAML documents or JSON; `place` names it in errors.
    ///
    /// # Errors
    /// [`LoadError`] names the document.
    pub fn load_text(&self, place: &str, text: &str) -> Result<usize, LoadError> {
        self.load(objects_of(place, text)?)
    }

    /// Takes in a file, or every `.yaml`, `.yml` and `.json` file of a folder, in the order of
    /// their names.
    ///
    /// # Errors
    /// [`LoadError`] names the file and the document.
    pub fn load_path(&self, path: &Path) -> Result<usize, LoadError> {
        self.load(read_objects(path)?)
    }
}

/// The objects of a file, or of every `.yaml`, `.yml` and `.json` file of a folder in the order of
/// their names, each with its place; lists are taken apart.
///
/// # Errors
/// [`LoadError`] names the file and the document.
pub fn read_objects(path: &Path) -> Result<Vec<(String, Value)>, LoadError> {
    let mut objects = Vec::new();
    read(path, 0, &mut objects)?;
    Ok(flat(objects))
}

fn flat(objects: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut flat = Vec::with_capacity(objects.len());
    for (place, object) in objects {
        flatten(place, object, &mut flat);
    }
    flat
}

fn read(path: &Path, depth: usize, objects: &mut Vec<(String, Value)>) -> Result<(), LoadError> {
    let fail = |source| LoadError::Read { path: path.to_owned(), source };
    if !path.is_dir() {
        let about = std::fs::metadata(path).map_err(fail)?;
        // Opening a pipe would wait for its writer.
        if !about.is_file() || about.len() > MAX_FILE {
            let what = format!("this is no file of at most {} MiB", MAX_FILE >> 20);
            return Err(fail(std::io::Error::other(what)));
        }
        let text = std::fs::read_to_string(path).map_err(fail)?;
        objects.extend(objects_of(&path.display().to_string(), &text)?);
        return Ok(());
    }
    if depth > DEPTH {
        return Err(fail(std::io::Error::other("folders are nested too deeply")));
    }
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        entries.push(entry.map_err(fail)?.path());
    }
    entries.sort();
    for entry in entries {
        let known = entry.extension().is_some_and(|extension| {
            extension == "yaml" || extension == "yml" || extension == "json"
        });
        if entry.is_dir() || known {
            read(&entry, depth + 1, objects)?;
        }
    }
    Ok(())
}

fn objects_of(place: &str, text: &str) -> Result<Vec<(String, Value)>, LoadError> {
    let objects = parsed(place, text.strip_prefix('\u{feff}').unwrap_or(text))?;
    // kubectl writes a list's kind behind its items: without one, it was cut.
    match objects.iter().find(|(_, object)| Kind::of(object).kind.is_empty()) {
        None => Ok(objects),
        Some((place, _)) => Err(LoadError::Parse {
            place: place.clone(),
            reason: "this is no object: it has no kind; perhaps it was cut off".to_owned(),
        }),
    }
}

fn parsed(place: &str, text: &str) -> Result<Vec<(String, Value)>, LoadError> {
    let fail = |place: String, reason: String| LoadError::Parse { place, reason };
    if text.trim_start().starts_with(['{', '[']) {
        return match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(items)) => {
                let place = |index| format!("{place}[{index}]");
                Ok(items
                    .into_iter()
                    .enumerate()
                    .map(|(index, item)| (place(index), item))
                    .collect())
            }
            Ok(object) => Ok(vec![(place.to_owned(), object)]),
            Err(error) => Err(fail(place.to_owned(), error.to_string())),
        };
    }
    let mut objects = Vec::new();
    for (index, document) in documents(text).into_iter().enumerate() {
        let place = format!("{place}, document {}", index + 1);
        let bad = |reason: String| fail(place.clone(), reason);
        let value = goyaml::from_yaml_exact(document.as_bytes(), &goyaml::Limits::default())
            .map_err(|error| bad(error.to_string()))?;
        let json = goyaml::json::to_json(&value).map_err(|error| bad(error.to_string()))?;
        let object: Value = serde_json::from_str(&json).map_err(|error| bad(error.to_string()))?;
        if !object.is_null() {
            objects.push((place, object));
        }
    }
    Ok(objects)
}

/// The documents of a YAML text, cut at lines of three dashes.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        if bare == "---" || bare.starts_with("--- ") {
            documents.push(String::new());
            if let Some(last) = documents.last_mut() {
                last.push_str(bare.strip_prefix("---").unwrap_or_default());
                last.push('\n');
            }
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
        }
    }
    documents
}

fn flatten(place: String, object: Value, flat: &mut Vec<(String, Value)>) {
    let is_list = Kind::of(&object).kind.ends_with("List")
        && object.get("items").is_some_and(Value::is_array);
    if !is_list {
        flat.push((place, object));
        return;
    }
    let list_kind = Kind::of(&object);
    let item_kind = list_kind.kind.strip_suffix("List").unwrap_or_default().to_owned();
    let Value::Object(mut fields) = object else { return };
    let Some(Value::Array(items)) = fields.remove("items") else { return };
    for (index, mut item) in items.into_iter().enumerate() {
        // Items of a typed list leave their kind out.
        if let Some(item) = item.as_object_mut()
            && !item_kind.is_empty()
        {
            item.entry("apiVersion").or_insert_with(|| list_kind.api_version().into());
            item.entry("kind").or_insert_with(|| item_kind.clone().into());
        }
        flat.push((format!("{place}, item {}", index + 1), item));
    }
}
