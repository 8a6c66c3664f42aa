//! Rendering: the engine, what its templates see, and the functions that Helm gives them.

mod capabilities_object;
mod convert;
mod engine;
mod engine_functions;
mod files;
pub mod functions;
mod glob;
pub mod host;
mod name_template;
mod objects;
mod record_template;
mod shared;
pub mod time;

pub(crate) use convert::from_tree;
pub use engine::{Engine, EngineOptions, Release, RenderError, RenderLimits};
pub use engine_functions::{ENGINE_FUNCTIONS, EngineState, Lookup, Resolver};
pub use functions::certificate_authority;
pub use host::Host;
pub use name_template::name_from_template;
pub(crate) use objects::metadata_yaml;
pub use record_template::{RecordTemplateError, template_of_record};
