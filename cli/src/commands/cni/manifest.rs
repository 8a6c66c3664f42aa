//! `ichor cni manifest`: the Job that carries a plan out, with the rights that it takes.

use clap::Args;
use goyaml::{Limits, Map};
use serde_json::{Value, json};
use takeover::job::{self, JobOptions};

use super::shared::{ConsentFlags, PlanFlags, no};
use crate::commands::Context;
use crate::commands::adopt::check_consent;
use crate::error::CommandError;
use crate::exit::Exit;

/// How the objects are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// YAML documents
    #[default]
    Yaml,
    /// One List in JSON
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Plans the takeover and prints, ready for kubectl apply: namespace ichor-system, ServiceAccount\n",
    "kube-system/ichor-cni, its Roles with their bindings, and the Job that carries this very plan\n",
    "out. The Roles hold what the plan needs and nothing else; a Job whose rights lack something\n",
    "refuses before it writes anything and names the Role to add it to.\n\n",
    "Examples:\n",
    "  ichor cni manifest --image example.org/ichor:1.0 | kubectl apply -f -\n",
    "  ichor cni manifest --rights | kubectl apply -f - && ichor cni plan --for-job\n",
    "  kubectl -n kube-system wait --for=condition=complete job/ichor-cni --timeout=15m\n",
    "  kubectl delete role,rolebinding,clusterrole,clusterrolebinding -A \\\n",
    "    -l app.kubernetes.io/name=ichor-cni      # when the takeover is done\n\n",
    "Exit codes:\n",
    "  0  printed\n",
    "  1  an error\n",
    "  2  the takeover is refused, or consent is missing; nothing is printed"
))]
pub(crate) struct Arguments {
    /// The image with this program
    #[arg(long, value_name = "IMAGE", required_unless_present = "rights")]
    image: Option<String>,
    /// Print the rights alone: namespace, ServiceAccount, Roles and bindings
    #[arg(long)]
    rights: bool,
    /// Form of the objects
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Form,
    #[command(flatten)]
    plan: PlanFlags,
    #[command(flatten)]
    consent: ConsentFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    arguments.plan.check_files()?;
    arguments.consent.timeout()?;
    let work = arguments.plan.work(context)?;
    #[cfg(feature = "controller")]
    if !arguments.rights {
        let host = arguments.plan.host(&work, context)?;
        let instead =
            "the controller makes the Job: `ichor adopt` (--rights prints the rights alone)";
        crate::commands::managed::check_nobody_acts(host, instead, context)?;
    }
    let prepared = arguments.plan.plan(&work, context)?;
    let plan = &prepared.plan;
    // What the caller may not do is no matter: somebody else will write.
    let refusals: Vec<&str> = plan
        .refusals
        .iter()
        .filter(|refusal| refusal.reason != "Rights")
        .map(|refusal| refusal.message.as_str())
        .collect();
    if !refusals.is_empty() {
        return Err(no(format_args!("refused: {}", refusals.join("; ")), "see `ichor cni plan`"));
    }
    if plan.digest.is_empty() {
        return Err(no("there is nothing to take over", "see `ichor cni status`"));
    }
    if !arguments.rights {
        // No plan is shown here that a consent without a digest could be about.
        check_consent(plan, &arguments.consent, true, context)?;
    }
    // The Job gets the very values of this plan; recovering them would take more rights.
    let values = work.values().or(prepared.recovered.as_ref());
    let values = values.filter(|_| plan.records.is_empty()).map(yaml).transpose()?;
    let options = JobOptions {
        image: arguments.image.clone().unwrap_or_default(),
        digest: plan.digest.clone(),
        accept_changes: arguments.consent.accept_cilium_changes,
        timeout: arguments.consent.timeout_text().to_owned(),
        api_server: job::api_server(&prepared),
        values,
        change: None,
    };
    let mut objects = job::objects(&prepared.needs, &options);
    if arguments.rights {
        objects.retain(|object| !matches!(object["kind"].as_str(), Some("Job" | "Secret")));
    }
    context.ui.result(text(&objects, arguments.output)?)?;
    Ok(Exit::Done)
}

fn yaml(values: &Map) -> Result<Vec<u8>, CommandError> {
    let text = goyaml::to_yaml(&goyaml::Value::Map(values.clone()));
    text.map(String::into_bytes).map_err(CommandError::new)
}

fn text(objects: &[Value], form: Form) -> Result<String, CommandError> {
    if form == Form::Json {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        return Ok(format!("{list:#}\n"));
    }
    let mut text = String::new();
    for object in objects {
        let value = goyaml::json::from_json(object.to_string().as_bytes(), &Limits::default())
            .map_err(CommandError::new)?;
        text.push_str("---\n");
        text.push_str(&goyaml::to_yaml(&value).map_err(CommandError::new)?);
    }
    Ok(text)
}
