//! Differences of structured data, leaf by leaf.
//!
//! ```text
//! manifest ─ read_objects ─► objects ─ compare_objects ─► pairs by identity ┐
//! value ────────────────────────────────────────────────────────────────── ┴─ compare ─► (path, old, new)
//! ```
//!
//! [`compare`] tells where two values differ; [`compare_objects`] pairs the objects of two
//! manifests and compares each pair. Both are pure and keep a stable order, so that a plan made
//! from them can have a digest.
//!
//! Lists of objects are compared by their merge key (a container by its name), as Kubernetes
//! merges them, where every item has one of its own; other lists are compared by index.

mod compare;
mod keys;
mod objects;
mod path;

pub use compare::{Change, Lists, compare};
pub use objects::{
    Identity, ManifestObject, ObjectDifference, compare_objects, each_object, is_cluster_scoped,
    read_objects,
};
pub use path::{LeafPath, Step};
