//! Release records: what `sh.helm.release.v1.NAME.vREVISION` holds, read without loss and
//! written so that Helm reads it.
//!
//! ```text
//! release string ─ codec ─► JSON text ─ raw ─► fields kept to the byte ─► typed views
//! ```

mod apply_method;
mod build;
mod chart;
mod codec;
pub mod compare;
mod export;
mod filter;
mod helm;
pub mod input;
mod raw;
mod record;
pub mod redact;
mod status;
pub mod storage;
mod unpack;
pub mod verify;

pub use apply_method::ApplyMethod;
pub use build::NewRecord;
pub use chart::ChartError;
pub use codec::{CodecError, CodecLimits, decode, encode};
pub use export::{ExportError, ExportTarget, Exported, export};
pub use filter::NameFilter;
pub use raw::RawObject;
pub use record::{FieldError, Hook, HookRun, INFO_FIELDS, Info, RELEASE_FIELDS, Record, Summary};
pub use status::Status;
pub use unpack::{UnpackError, UnpackedChart};
