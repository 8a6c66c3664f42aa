//! `ichor chart pull`.

use std::fmt::Write as _;
use std::path::PathBuf;

use goyaml::{Map, Value};
use helm_rs::error_chain;
use helm_rs::gotext::quote;
use helm_rs::repo::{Pin, save};

use crate::cache;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;
use crate::output::{Output, write_structured};

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "A pinned chart is looked for in ICHOR_CHART_DIR, then in the user's cache, then downloaded.\n",
    "Its digest is checked every time; on a mismatch nothing is kept.\n\n",
    "Examples:\n",
    "  ichor chart pull cilium -d charts\n",
    "  ichor chart pull --list"
))]
pub(crate) struct Arguments {
    /// Name of the pinned chart
    #[arg(required_unless_present = "list")]
    chart: Option<String>,
    /// Its version
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Folder to write the archive to
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    destination: PathBuf,
    /// List the pinned charts instead
    #[arg(long)]
    list: bool,
    /// Bytes that the archive may have
    #[arg(long, value_name = "BYTES", value_parser = flags::whole_number::<u64>, default_value_t = 100 * 1024 * 1024, hide_short_help = true)]
    max_archive_size: u64,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let pins = cache::pins()?;
    if arguments.list {
        let mut table = String::from("NAME\tVERSION\tDIGEST\n");
        let mut entries = Vec::new();
        for pin in pins.iter() {
            let _ = writeln!(table, "{}\t{}\t{}", pin.name, pin.version, pin.digest);
            entries.push(Value::Map(pin_value(pin)));
        }
        write_structured(context.ui, arguments.output, &Value::Seq(entries), table.as_bytes())?;
        return Ok(Exit::Done);
    }
    let name = arguments.chart.as_deref().unwrap_or_default();
    let pin = pins.find(name, arguments.version.as_deref()).ok_or_else(|| {
        let version = arguments.version.as_deref().map_or_else(String::new, |v| format!(" {v}"));
        CommandError::new(format_args!("chart {}{version} is not pinned", quote(name)))
            .hint("see the pinned charts: ichor chart pull --list")
    })?;
    let resolved = cache::resolve(pin, arguments.max_archive_size, context)?;
    let path = arguments.destination.join(pin.file_name());
    save(&path, &resolved.bytes).map_err(|error| CommandError::new(error_chain(&error)))?;
    let mut result = pin_value(pin);
    result.insert("path", path.display().to_string());
    result.insert("from", resolved.place.name());
    let line = format!("{}\n", path.display());
    write_structured(context.ui, arguments.output, &Value::Map(result), line.as_bytes())?;
    Ok(Exit::Done)
}

fn pin_value(pin: &Pin) -> Map {
    let mut map = Map::new();
    map.insert("name", pin.name.as_str());
    map.insert("version", pin.version.as_str());
    map.insert("url", pin.url.as_str());
    map.insert("digest", pin.digest.to_string());
    map
}
