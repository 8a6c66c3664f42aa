//! `--post-renderer`: a program that changes the manifest (`pkg/postrender/exec.go`).

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use helm_rs::action::PostRenderer;

use crate::commands::post_render;
use crate::environment::Environment;
use crate::error::CommandError;

/// The program and its arguments.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rendering")]
pub(crate) struct PostRendererFlags {
    /// A program that gets the manifest and gives another one; no shell is involved
    #[arg(long, value_name = "PROGRAM")]
    post_renderer: Option<String>,
    /// An argument for it (repeatable)
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    post_renderer_args: Vec<String>,
}

impl PostRendererFlags {
    /// Finds the program.
    pub(crate) fn find(
        &self,
        environment: &Environment,
    ) -> Result<Option<Arc<dyn PostRenderer>>, CommandError> {
        let Some(wanted) = self.post_renderer.as_deref().filter(|wanted| !wanted.is_empty()) else {
            return Ok(None);
        };
        let program = post_render::find(wanted, environment)?;
        Ok(Some(Arc::new(Program { program, arguments: self.post_renderer_args.clone() })))
    }
}

#[derive(Debug)]
struct Program {
    program: PathBuf,
    arguments: Vec<String>,
}

impl PostRenderer for Program {
    fn run(&self, manifest: &[u8]) -> Result<Vec<u8>, String> {
        post_render::run(&self.program, &self.arguments, manifest)
            .map_err(|error| String::from_utf8_lossy(&error).into_owned())
    }
}
