//! Faults at chosen requests of actions, many at once, and what must hold after.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use live::objects::{Objects, differences, read};
use live::trial::{Action, Revision, Setup, Trial, kubeconfig_through, token_in_file};
use live::{Program, at_once};
use plane::support::or_skip;
use plane::{Fault, FaultProxy, Match, Plane, PlaneOptions};
use test_support::sealed::Outcome;

/// What is struck, with and without hooks.
pub(crate) const CASES: [(Setup, Action); 8] = [
    (Setup::Plain, Action::Install),
    (Setup::Plain, Action::Upgrade),
    (Setup::Plain, Action::Rollback),
    (Setup::Plain, Action::Uninstall),
    (Setup::Hooks, Action::Upgrade),
    (Setup::Hooks, Action::Rollback),
    (Setup::Hooks, Action::Uninstall),
    (Setup::Hooks, Action::Test),
];
/// Trials under way at once: most of their time they wait to try again.
const WORKERS: usize = 8;
/// Longer than a healthy answer takes on a busy machine.
const REQUEST_TIMEOUT: &str = "3s";
/// Longer than a hook takes on a busy machine. Who waits for one reads on until it is over.
const TIMEOUT: &str = "40s";
const DELAY: Duration = Duration::from_secs(30);

/// A kind of fault.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) fault: Fault,
    /// How many requests in a row it strikes when it passes.
    pub(crate) passing: usize,
    /// What the program says of it when it lasts; the second way is client-go's, for answers whose
    /// body does not count.
    says: &'static [&'static str],
}

pub(crate) const KINDS: [Kind; 9] = [
    Kind {
        name: "429 with Retry-After",
        fault: Fault::TooManyRequests { retry_after: 1 },
        passing: 2,
        says: &["too many requests"],
    },
    Kind { name: "429", fault: Fault::Busy, passing: 2, says: &["too many requests"] },
    Kind {
        name: "409",
        fault: Fault::Conflict,
        passing: 1,
        says: &["the object has been modified", "the server reported a conflict"],
    },
    Kind {
        name: "500",
        fault: Fault::InternalError,
        passing: 1,
        says: &["an error on the server"],
    },
    Kind {
        name: "503",
        fault: Fault::Unavailable,
        passing: 2,
        says: &["the server is currently unable to handle the request"],
    },
    Kind { name: "cut before", fault: Fault::CutBefore, passing: 2, says: &["EOF"] },
    Kind { name: "cut after", fault: Fault::CutAfter, passing: 1, says: &["EOF"] },
    Kind {
        name: "timeout",
        fault: Fault::Delay(DELAY),
        passing: 1,
        says: &["Client.Timeout exceeded while awaiting headers"],
    },
    Kind {
        name: "401",
        fault: Fault::ExpiredToken,
        passing: 1,
        says: &["Unauthorized", "the server has asked for the client to provide credentials"],
    },
];

/// How long a fault is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// It strikes a request or two, whatever they are.
    Passes,
    /// It strikes everything from a request on.
    Lasts,
    /// It strikes each write of one object, and nothing else.
    OneObject,
}

/// A fault at a place of an action.
struct Strike {
    kind: &'static Kind,
    course: Course,
    /// Which of the [`CASES`].
    case: usize,
    /// How many requests are let go before.
    place: usize,
}

/// How a trial went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Survived,
    /// Nothing was begun.
    Refused,
    /// The record says that the action failed, and why.
    Failed,
    /// The record, or that there is none, says that the action is done, though the program could not
    /// know.
    Done,
    /// The record says that the action is under way, and the program said that it may.
    Pending,
}

/// A trial that is over.
struct Ended<'b> {
    strike: &'b Strike,
    trial: Trial<'b>,
    outcome: Outcome,
    history: Vec<Revision>,
}

/// A case without faults.
struct Healthy {
    /// The objects before and after the action.
    before: Objects,
    after: Objects,
    /// How many requests it sends.
    requests: usize,
}

pub(crate) struct Bed {
    plane: Plane,
    proxies: Vec<(FaultProxy, PathBuf)>,
    /// By the case's number.
    healthy: BTreeMap<usize, Healthy>,
}

/// Puts the kinds of faults on places of an action with so many requests.
pub(crate) type Places = fn(kind: usize, requests: usize) -> Vec<usize>;

impl Bed {
    /// A plane on which these cases went well once.
    pub(crate) async fn open(cases: Range<usize>) -> Option<Self> {
        let plane = or_skip(Plane::start(PlaneOptions::default()).await)?;
        let mut proxies = Vec::new();
        for index in 0..WORKERS {
            let proxy = plane.fault_proxy().await.unwrap();
            let name = format!("through-{index}");
            let through = kubeconfig_through(&plane, &proxy.url(), &name);
            token_in_file(&through, &plane.folder().join(format!("{name}.token")));
            proxies.push((proxy, through));
        }
        let cases: Vec<usize> = cases.collect();
        let found = at_once(&proxies, &cases, |_, case, (proxy, through)| {
            let (setup, action) = CASES[*case];
            let trial = Trial::prepare_with(&plane, action, &format!("reference-{case}"), setup);
            let before = trial.objects(&read(&plane).unwrap());
            let outcome = act(&trial, through);
            assert_eq!((outcome.code, trial.unfinished()), (Some(0), None), "{}", told(&outcome));
            let requests = proxy.requests().len();
            proxy.forget();
            Healthy { before, after: trial.objects(&read(&plane).unwrap()), requests }
        });
        let healthy = cases.into_iter().zip(found).collect();
        Some(Self { plane, proxies, healthy })
    }

    /// Runs cases under each kind of fault, and prints how they went; what must not be.
    pub(crate) fn strike(
        &self,
        course: Course,
        cases: Range<usize>,
        places: Places,
    ) -> Vec<String> {
        let began = Instant::now();
        let mut strikes = Vec::new();
        for case in cases {
            for (index, kind) in KINDS.iter().enumerate() {
                for place in places(index, self.healthy[&case].requests) {
                    strikes.push(Strike { kind, course, case, place });
                }
            }
        }
        let ended = at_once(&self.proxies, &strikes, |number, strike, worker| {
            self.struck(strike, &number.to_string(), worker)
        });
        let mut faults = Vec::new();
        let mut ends: BTreeMap<((Setup, Action), End), usize> = BTreeMap::new();
        let all = read(&self.plane).unwrap();
        for ended in &ended {
            faults.extend(self.halves(ended, &ended.trial.objects(&all)));
            match ended.end() {
                Ok(end) => *ends.entry((CASES[ended.strike.case], end)).or_default() += 1,
                Err(fault) => faults.push(ended.title(&fault)),
            }
        }
        let unfinished: Vec<&Ended<'_>> =
            ended.iter().filter(|ended| ended.outcome.code != Some(0)).collect();
        let again = at_once(&self.proxies, &unfinished, |number, ended, worker| {
            let again = ended.trial.recovered();
            // A rollback that failed goes on by what its record says, and leaves what Helm leaves.
            let failed = ended.trial.action == Action::Rollback
                && ended.history.last().is_some_and(|last| last.status == "failed");
            let helms = failed.then(|| {
                let other = self.struck(ended.strike, &format!("helm-{number}"), worker);
                (other.trial.recovered_by_helm(), other.trial)
            });
            (again, helms)
        });
        let all = read(&self.plane).unwrap();
        for (ended, (again, helms)) in unfinished.iter().zip(again) {
            let mut wanted = self.healthy[&ended.strike.case].after.clone();
            if let Some((told, helms)) = helms {
                wanted = helms.objects(&all);
                faults.extend(told.err().map(|told| ended.title(&format!("Helm: {told}"))));
            }
            let mut found = ended.trial.objects(&all);
            // The records go though a hook after the deletion failed, as in Helm: nobody knows of
            // its objects any more.
            if ended.trial.action == Action::Uninstall && ended.history.is_empty() {
                wanted.retain(|title, _| !ended.trial.is_hook(title));
                found.retain(|title, _| !ended.trial.is_hook(title));
            }
            let mut wrong = differences(&wanted, &found);
            wrong.extend(ended.trial.unfinished());
            wrong.extend(again.err());
            faults.extend(wrong.iter().map(|fault| ended.title(&format!("run again: {fault}"))));
        }
        println!(
            "{course:?}: {} strikes of {} kinds, {:.0} s: {ends:?}; {} run again to the end state",
            ended.len(),
            KINDS.len(),
            began.elapsed().as_secs_f64(),
            unfinished.len()
        );
        for fault in &faults {
            println!("fault: {fault}");
        }
        faults
    }

    /// The action in a namespace of its own, under a fault.
    fn struck<'b>(
        &'b self,
        strike: &'b Strike,
        number: &str,
        (proxy, through): &(FaultProxy, PathBuf),
    ) -> Ended<'b> {
        let Strike { kind, course, case, place } = strike;
        let (setup, action) = CASES[*case];
        let what = format!("{course:?}-{setup:?}-{}-{number}", action.name());
        let trial = Trial::prepare_with(&self.plane, action, &what.to_lowercase(), setup);
        let rule = match course {
            Course::OneObject => Match::any().verbs(&["create", "patch"]).resource("rolebindings"),
            _ => Match::any(),
        };
        let count = (*course == Course::Passes).then_some(kind.passing);
        proxy.add_later(*place, count, rule, kind.fault.clone());
        let outcome = act(&trial, through);
        proxy.clear();
        let history = trial.history();
        Ended { strike, trial, outcome, history }
    }

    /// Objects that are neither as before nor as after the action.
    fn halves(&self, ended: &Ended<'_>, found: &Objects) -> Vec<String> {
        let Healthy { before, after, .. } = &self.healthy[&ended.strike.case];
        if ended.outcome.code == Some(0) {
            let wrong = differences(after, found);
            return wrong.iter().map(|fault| ended.title(fault)).collect();
        }
        let mut titles: Vec<&String> =
            before.keys().chain(after.keys()).chain(found.keys()).collect();
        titles.sort();
        titles.dedup();
        titles
            .into_iter()
            .filter(|title| {
                let is = found.get(*title);
                let is_half = is != before.get(*title) && is != after.get(*title);
                is_half && !ended.trial.is_hook(title)
            })
            .map(|title| ended.title(&format!("half written: {title}")))
            .collect()
    }
}

impl Ended<'_> {
    fn title(&self, fault: &str) -> String {
        let Strike { kind, course, case, place } = self.strike;
        let (setup, action) = CASES[*case];
        format!(
            "{setup:?} {}, {} {course:?} from request {place}: {fault}\n  exit {:?}: {}\n  {:?}",
            action.name(),
            kind.name,
            self.outcome.code,
            told(&self.outcome),
            self.history
        )
    }

    /// How the trial went, or what must not be.
    fn end(&self) -> Result<End, String> {
        let course = self.strike.course;
        if self.outcome.code == Some(0) {
            let right = course == Course::Passes;
            let unfinished = self.trial.unfinished();
            return match unfinished {
                None if right => Ok(End::Survived),
                None => Err("survived what lasts".to_owned()),
                Some(fault) => Err(fault),
            };
        }
        if course == Course::Passes {
            return Err("not survived".to_owned());
        }
        // A hook is waited for through whatever fails, as in Helm: time is up, then.
        let waits = (CASES[self.strike.case].0 == Setup::Hooks)
            .then_some("timed out waiting for the condition");
        let says = |text: &str| {
            self.strike.kind.says.iter().copied().chain(waits).any(|words| text.contains(words))
        };
        let text = told(&self.outcome);
        if self.outcome.code != Some(1) || !says(&text) {
            return Err("not said what it is".to_owned());
        }
        let action = CASES[self.strike.case].1;
        if action == Action::Uninstall {
            return Ok(match self.history.last().map(|last| last.status.as_str()) {
                Some("deployed") => End::Refused,
                // Running it again goes on.
                Some("uninstalling" | "uninstalled") => End::Failed,
                Some(status) => return Err(format!("the record says {status}")),
                None => End::Done,
            });
        }
        let Some(last) = self.history.get(action.revisions_before()) else {
            return match self.history.last() {
                Some(last) if last.status != "deployed" => Err("the record before".to_owned()),
                _ if action == Action::Test => Ok(End::Failed),
                _ => Ok(End::Refused),
            };
        };
        let end = match last.status.as_str() {
            "failed" if says(&last.description) => End::Failed,
            "failed" => return Err("the record does not say why".to_owned()),
            "deployed" if text.contains("ichor release repair r") => End::Done,
            _ if text.contains("ichor release repair r") => End::Pending,
            _ => return Err("a record that nobody was told of".to_owned()),
        };
        if course == Course::OneObject && end != End::Failed {
            return Err("the record could be written".to_owned());
        }
        Ok(end)
    }
}

/// Nothing was wrong.
pub(crate) fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Runs the trial's action.
pub(crate) fn act(trial: &Trial<'_>, kubeconfig: &std::path::Path) -> Outcome {
    let mut arguments = trial.arguments(trial.action);
    let bounds = ["--request-timeout", REQUEST_TIMEOUT, "--timeout", TIMEOUT];
    arguments.extend(bounds.map(str::to_owned));
    Program::Ichor.sealed(kubeconfig).run(&arguments)
}

pub(crate) fn told(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stderr).into_owned()
}
