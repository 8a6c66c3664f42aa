//! `ichor release verify`: the audit.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE, RELEASE};
use clap::Args;
use goyaml::Value;
use helm_rs::capabilities::KubeVersion;
use helm_rs::release::verify::{
    Audited, Finding, Interrupt, KeptApart, Question, Rerender, Rerendered, sort, verify_beside,
};

use super::source::SourceFlags;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;
use crate::output::{Output, printable, write_structured};

pub(super) const EXAMPLES: &str = "\
Examples:
  kubectl get secrets,configmaps -A -o yaml | ichor release verify --from -
  ichor release verify --kube-version 1.36 --from dump.yaml
  ichor release verify --rerender --output json --from backup.tar.gz
  ichor release verify -A                  # records and objects of a cluster

Of a cluster's records, the objects in the manifests are looked for too; those of files only with
--live.

Exit codes:
  0  no findings
  1  an error
  2  findings";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Kubernetes version that removed APIs are looked up for, and that --rerender begins with
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// Render each record's chart again: it must give the stored manifest
    #[arg(long)]
    rerender: bool,
    /// API version that --rerender begins with, besides the usual ones (repeatable, comma-separated)
    #[arg(short, long, value_name = "VERSION")]
    api_versions: Vec<String>,
    /// Look for the manifests' objects on the cluster: missing ones, and those of other releases
    #[arg(long)]
    live: bool,
    /// Seconds that rendering may take in all
    #[arg(long, value_name = "SECONDS", default_value_t = 600, hide_short_help = true)]
    max_time: u64,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    source: SourceFlags,
}

impl Arguments {
    fn question(&self, context: &Context<'_>) -> Result<Question, CommandError> {
        let kube_version = match &self.kube_version {
            Some(text) => Some(KubeVersion::parse(text).map_err(CommandError::new)?),
            None => None,
        };
        let since = context.environment.now().duration_since(SystemTime::UNIX_EPOCH);
        let now = i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX);
        let api_versions = flags::string_slice("-a, --api-versions", &self.api_versions)?;
        // A deadline beyond what the clock can tell is none.
        let deadline = Instant::now().checked_add(Duration::from_secs(self.max_time));
        let interrupt =
            deadline.map(|deadline| Interrupt(Arc::new(move || Instant::now() >= deadline)));
        let rerender =
            self.rerender.then(|| Rerender { api_versions, interrupt, ..Rerender::default() });
        // What a takeover leaves is as it should be.
        let kept_apart = Some(KeptApart {
            release: RELEASE.to_owned(),
            namespace: NAMESPACE.to_owned(),
            records: RECORD_NAMESPACE.to_owned(),
        });
        Ok(Question { now, kube_version, rerender, kept_apart, ..Question::default() })
    }
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let question = arguments.question(context)?;
    let audited = arguments.source.audit(&question, context)?;
    let count = audited.records.len();
    let mut renders: Vec<Render> = audited.records.iter().filter_map(Render::of).collect();
    renders.sort_by(|a, b| a.subject.cmp(&b.subject));
    let mut findings = Vec::new();
    if arguments.live || arguments.source.is_live() {
        findings = live_findings(&audited.records, &arguments.source, context)?;
    }
    findings.extend(verify_beside(audited.records, &audited.findings));
    findings.extend(audited.findings);
    sort(&mut findings);
    let mut fields = vec![
        ("records", Value::Int(i64::try_from(count).unwrap_or(i64::MAX))),
        ("findings", Value::Seq(findings.iter().map(structured).collect())),
    ];
    if arguments.rerender {
        fields.push(("rerendered", Value::Seq(renders.iter().map(Render::structured).collect())));
    }
    let value = Value::Map(fields.into_iter().collect());
    let text = table(&findings, &renders, count);
    write_structured(context.ui, arguments.output, &value, text.as_bytes())?;
    Ok(if findings.is_empty() { Exit::Done } else { Exit::No })
}

/// Objects that are asked for at the same time.
#[cfg(feature = "network")]
const AT_ONCE: usize = 16;

/// What is wrong with the manifests' objects on the cluster.
#[cfg(feature = "network")]
fn live_findings(
    records: &[Audited],
    source: &SourceFlags,
    context: &mut Context<'_>,
) -> Result<Vec<Finding>, CommandError> {
    use helm_rs::cluster::Cluster as _;
    use helm_rs::release::verify::{Live, compare_live, expected, look};

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| CommandError::new(format_args!("cannot start: {error}")))?;
    let objects = Arc::new(expected(records));
    let looked = runtime.block_on(async {
        let cluster = source.cluster().connect(context.environment, Arc::new(|_| ())).await?;
        let discovery = cluster.discovery(false).await.map_err(CommandError::new)?;
        let mut tasks = tokio::task::JoinSet::new();
        let mut looked = vec![Live::Unknown; objects.len()];
        let mut next = 0;
        loop {
            while next < objects.len() && tasks.len() < AT_ONCE {
                let (cluster, discovery) = (Arc::clone(&cluster), Arc::clone(&discovery));
                let (objects, index) = (Arc::clone(&objects), next);
                tasks.spawn(async move {
                    let found = match objects.get(index) {
                        Some(object) => look(&*cluster, &discovery, object).await,
                        None => Ok(Live::Unknown),
                    };
                    (index, found)
                });
                next += 1;
            }
            let Some(done) = tasks.join_next().await else { break };
            let (index, found) = done.map_err(CommandError::new)?;
            if let Some(place) = looked.get_mut(index) {
                *place = found.map_err(CommandError::new)?;
            }
        }
        Ok::<_, CommandError>(looked)
    })?;
    let unknown = looked.iter().filter(|live| **live == Live::Unknown).count();
    if unknown > 0 {
        context.ui.warning(format!(
            "warning: {unknown} of {} objects could not be read, and are not reported",
            objects.len()
        ));
    }
    Ok(objects
        .iter()
        .zip(&looked)
        .filter_map(|(object, live)| compare_live(object, live))
        .collect())
}

#[cfg(not(feature = "network"))]
fn live_findings(
    _: &[Audited],
    _: &SourceFlags,
    _: &mut Context<'_>,
) -> Result<Vec<Finding>, CommandError> {
    Err(CommandError::new("this build reads no cluster"))
}

/// What rendering one record's chart again showed.
struct Render {
    /// Namespace, release, revision.
    subject: (String, String, i64),
    result: Rerendered,
}

impl Render {
    fn of(record: &Audited) -> Option<Self> {
        let (namespace, release, revision) = record.subject();
        let subject = (namespace.to_owned(), release.to_owned(), revision);
        Some(Self { subject, result: record.rerendered()?.clone() })
    }

    fn structured(&self) -> Value {
        let (namespace, release, revision) = &self.subject;
        let texts = |texts: &[String]| {
            Value::Seq(texts.iter().map(|text| Value::from(text.as_str())).collect())
        };
        Value::Map(
            [
                ("namespace", Value::from(namespace.as_str())),
                ("release", Value::from(release.as_str())),
                ("revision", Value::Int(*revision)),
                ("verdict", Value::from(self.result.verdict.as_str())),
                ("reason", Value::from(self.result.reason.as_str())),
                ("differences", texts(&self.result.differences)),
                ("generated", texts(&self.result.generated)),
                (
                    "subchartObjects",
                    Value::Int(i64::try_from(self.result.left_out).unwrap_or(i64::MAX)),
                ),
            ]
            .into_iter()
            .collect(),
        )
    }

    /// What a table says, besides the finding.
    fn lines(&self) -> String {
        let (namespace, release, revision) = &self.subject;
        let mut out =
            format!("rerender {namespace}/{release} revision {revision}: {}\n", self.result.reason);
        if !self.result.generated.is_empty() {
            out.push_str(&format!(
                "  generated, not compared: {}\n",
                self.result.generated.join("; ")
            ));
        }
        if self.result.left_out > 0 {
            out.push_str(&format!(
                "  {} objects of subcharts not compared: records do not hold subcharts\n",
                self.result.left_out
            ));
        }
        out
    }
}

fn structured(finding: &Finding) -> Value {
    let text = |text: &str| Value::from(text);
    let code = finding.code;
    Value::Map(
        [
            ("code", text(code.as_str())),
            ("severity", text(code.severity().as_str())),
            ("namespace", text(&finding.namespace)),
            ("release", text(&finding.release)),
            ("revision", finding.revision.map_or(Value::Null, Value::from)),
            ("place", text(&finding.place)),
            ("message", text(&finding.message)),
            ("meaning", text(code.meaning())),
            ("advice", text(code.advice())),
        ]
        .into_iter()
        .collect(),
    )
}

fn table(findings: &[Finding], renders: &[Render], count: usize) -> String {
    let mut out: String = findings.iter().flat_map(line).collect();
    out.extend(renders.iter().map(Render::lines));
    let mut out = printable(&out);
    let records = if count == 1 { "record" } else { "records" };
    out.push_str(&match findings.len() {
        0 => format!("{count} {records}, no findings\n"),
        1 => format!("{count} {records}, 1 finding\n"),
        found => format!("{count} {records}, {found} findings\n"),
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
