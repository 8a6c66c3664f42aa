//! Patches of Kubernetes objects, made and applied as Helm and the API server do.
//!
//! - [`three_way`] makes the patch that leads from what was applied last and what is live to what
//!   is wanted; [`helm`] chooses its type as Helm does; [`apply`] applies one in memory.
//! - [`strategic`] and [`merge`] are the two kinds of merge patches by themselves.
//! - [`Schemas`] tells how a kind's lists are merged: [`embedded`] is what Helm's own client
//!   knows, [`OpenApi`] is what a server says.
//!
//! Objects are `serde_json` values. Nothing here knows a cluster or Helm's releases.
//!
//! ```
//! use mergepatch::{Schemas as _, apply, embedded, three_way};
//! use serde_json::json;
//!
//! let service = |ports| json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}});
//! let applied = service(json!([{"port": 80}, {"port": 81}]));
//! let wanted = service(json!([{"port": 80, "name": "http"}]));
//! let live = service(json!([{"port": 80, "nodePort": 30080}, {"port": 81}, {"port": 82}]));
//!
//! let schema = embedded().schema("v1", "Service");
//! let patch = three_way(&applied, &wanted, &live, schema)?;
//! let after = apply(&live, &patch, schema)?;
//! let ports = json!([{"port": 80, "name": "http", "nodePort": 30080}, {"port": 82}]);
//! assert_eq!(after, service(ports));
//! # Ok::<(), mergepatch::Error>(())
//! ```

mod error;
mod gosort;
mod json;
pub mod merge;
mod patch;
mod schema;
pub mod strategic;
mod value;

pub use error::Error;
pub use json::to_json;
pub use patch::{Patch, PatchType, Untyped, apply, helm, three_way};
pub use schema::{Embedded, LookupError, OpenApi, PatchMeta, Schema, Schemas, embedded};
pub use value::{MAX_DEPTH, Object};
