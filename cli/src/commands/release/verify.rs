//! `ichor release verify`: the audit.

use std::time::SystemTime;

use clap::Args;
use goyaml::Value;
use helm_rs::capabilities::KubeVersion;
use helm_rs::release::verify::{Finding, Question, sort, verify};

use super::source::SourceFlags;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Kubernetes version that removed APIs are looked up for
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    source: SourceFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let kube_version = match &arguments.kube_version {
        Some(text) => Some(KubeVersion::parse(text).map_err(CommandError::new)?),
        None => None,
    };
    let since = context.environment.now().duration_since(SystemTime::UNIX_EPOCH);
    let now = i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX);
    let audited = arguments.source.audit(&Question { now, kube_version }, context);
    let count = audited.records.len();
    let mut findings = verify(audited.records);
    findings.extend(audited.findings);
    sort(&mut findings);
    let value = Value::Seq(findings.iter().map(structured).collect());
    let text = table(&findings, count);
    write_structured(context.ui, arguments.output, &value, text.as_bytes())?;
    Ok(if findings.is_empty() { Exit::Done } else { Exit::No })
}

fn structured(finding: &Finding) -> Value {
    let text = |text: &str| Value::from(text);
    Value::Map(
        [
            ("code", text(finding.code.as_str())),
            ("severity", text(finding.code.severity().as_str())),
            ("namespace", text(&finding.namespace)),
            ("release", text(&finding.release)),
            ("revision", finding.revision.map_or(Value::Null, Value::from)),
            ("place", text(&finding.place)),
            ("message", text(&finding.message)),
            ("advice", text(finding.code.advice())),
        ]
        .into_iter()
        .collect(),
    )
}

fn table(findings: &[Finding], count: usize) -> String {
    let mut out: String = findings.iter().flat_map(line).collect();
    out.push_str(&match findings.len() {
        0 => format!("{count} records, no findings\n"),
        found => format!("{count} records, {found} findings\n"),
    });
    out
}

fn line(finding: &Finding) -> [String; 2] {
    let mut subject = finding.place.clone();
    if !finding.release.is_empty() {
        subject = format!("{}/{}", finding.namespace, finding.release);
        if let Some(revision) = finding.revision {
            subject.push_str(&format!(" revision {revision}"));
        }
    }
    let code = finding.code;
    [
        format!("{} {}: {subject}: {}\n", code.severity().as_str(), code.as_str(), finding.message),
        format!("  {}; what to do: {}\n", finding.place, code.advice()),
    ]
}
