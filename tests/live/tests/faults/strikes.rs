//! Faults at chosen requests of installations and upgrades, many at once, and what must hold after.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use live::Program;
use live::objects::{Objects, differences, read};
use live::trial::{Action, Revision, Trial, kubeconfig_through, token_in_file};
use plane::support::or_skip;
use plane::{Fault, FaultProxy, Match, Plane, PlaneOptions};
use test_support::sealed::Outcome;

const ACTIONS: [Action; 2] = [Action::Install, Action::Upgrade];
/// Trials under way at once: most of their time they wait to try again.
const WORKERS: usize = 8;
/// Longer than a healthy answer takes on a busy machine.
const REQUEST_TIMEOUT: &str = "3s";
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
    action: Action,
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
    /// The record says that the action is done, though the program could not know.
    Deployed,
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

pub(crate) struct Bed {
    plane: Plane,
    proxies: Vec<(FaultProxy, PathBuf)>,
    /// The objects before and after each action.
    before: [Objects; 2],
    after: [Objects; 2],
    /// How many requests each action sends.
    requests: [usize; 2],
}

/// Puts the kinds of faults on places of an action with so many requests.
pub(crate) type Places = fn(kind: usize, requests: usize) -> Vec<usize>;

impl Bed {
    pub(crate) async fn open() -> Option<Self> {
        let plane = or_skip(Plane::start(PlaneOptions::default()).await)?;
        let mut proxies = Vec::new();
        for index in 0..WORKERS {
            let proxy = plane.fault_proxy().await.unwrap();
            let name = format!("through-{index}");
            let through = kubeconfig_through(&plane, &proxy.url(), &name);
            token_in_file(&through, &plane.folder().join(format!("{name}.token")));
            proxies.push((proxy, through));
        }
        let (before, after) = Default::default();
        let mut bed = Self { plane, proxies, before, after, requests: [0; 2] };
        for (index, action) in ACTIONS.into_iter().enumerate() {
            let namespace = format!("reference-{}", action.name());
            let trial = Trial::prepare(&bed.plane, action, &namespace);
            let (proxy, through) = &bed.proxies[0];
            bed.before[index] = trial.objects(&read(&bed.plane).unwrap());
            let outcome = act(&trial, through);
            assert_eq!((outcome.code, trial.unfinished()), (Some(0), None), "{}", told(&outcome));
            bed.after[index] = trial.objects(&read(&bed.plane).unwrap());
            bed.requests[index] = proxy.requests().len();
            proxy.forget();
        }
        Some(bed)
    }

    /// Runs both actions under each kind of fault, and prints how they went.
    pub(crate) fn strike(&self, course: Course, places: Places) {
        let began = Instant::now();
        let mut strikes = Vec::new();
        for (action, &requests) in ACTIONS.into_iter().zip(&self.requests) {
            for (index, kind) in KINDS.iter().enumerate() {
                for place in places(index, requests) {
                    strikes.push(Strike { kind, course, action, place });
                }
            }
        }
        let ended = self.at_once(&strikes, |number, strike, (proxy, through)| {
            let what = strike.action.name();
            let namespace = format!("{course:?}-{what}-{number}").to_lowercase();
            let trial = Trial::prepare(&self.plane, strike.action, &namespace);
            let rule = match course {
                Course::OneObject => {
                    Match::any().verbs(&["create", "patch"]).resource("rolebindings")
                }
                _ => Match::any(),
            };
            let count = (course == Course::Passes).then_some(strike.kind.passing);
            proxy.add_later(strike.place, count, rule, strike.kind.fault.clone());
            let outcome = act(&trial, through);
            proxy.clear();
            let history = trial.history();
            Ended { strike, trial, outcome, history }
        });
        let mut faults = Vec::new();
        let mut ends: BTreeMap<(&str, End), usize> = BTreeMap::new();
        let all = read(&self.plane).unwrap();
        for ended in &ended {
            faults.extend(self.halves(ended, &ended.trial.objects(&all)));
            match ended.end() {
                Ok(end) => *ends.entry((ended.strike.action.name(), end)).or_default() += 1,
                Err(fault) => faults.push(ended.title(&fault)),
            }
        }
        let unfinished: Vec<&Ended<'_>> =
            ended.iter().filter(|ended| ended.outcome.code != Some(0)).collect();
        self.at_once(&unfinished, |_, ended, _| ended.trial.recover());
        let all = read(&self.plane).unwrap();
        for ended in &unfinished {
            let after = &self.after[ended.strike.action as usize];
            let mut wrong = differences(after, &ended.trial.objects(&all));
            wrong.extend(ended.trial.unfinished());
            faults.extend(wrong.iter().map(|fault| ended.title(&format!("run again: {fault}"))));
        }
        println!(
            "{course:?}: {} strikes of {} kinds, {:.0} s: {ends:?}; {} run again to the end state",
            ended.len(),
            KINDS.len(),
            began.elapsed().as_secs_f64(),
            unfinished.len()
        );
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    }

    /// Works on all, a few at once, each with a proxy to itself.
    fn at_once<'t, T: Sync, R: Send>(
        &self,
        tasks: &'t [T],
        work: impl Fn(usize, &'t T, &(FaultProxy, PathBuf)) -> R + Sync,
    ) -> Vec<R> {
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for proxy in &self.proxies {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        let Some(task) = tasks.get(number) else { break };
                        let result = work(number, task, proxy);
                        done.lock().unwrap().push(result);
                    }
                });
            }
        });
        done.into_inner().unwrap()
    }

    /// Objects that are neither as before nor as after the action.
    fn halves(&self, ended: &Ended<'_>, found: &Objects) -> Vec<String> {
        let index = ended.strike.action as usize;
        let (before, after) = (&self.before[index], &self.after[index]);
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
                is != before.get(*title) && is != after.get(*title)
            })
            .map(|title| ended.title(&format!("half written: {title}")))
            .collect()
    }
}

impl Ended<'_> {
    fn title(&self, fault: &str) -> String {
        let Strike { kind, course, action, place } = self.strike;
        let what = action.name();
        format!(
            "{what}, {} {course:?} from request {place}: {fault}\n  exit {:?}: {}\n  {:?}",
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
        let says = |text: &str| self.strike.kind.says.iter().any(|words| text.contains(words));
        let text = told(&self.outcome);
        if self.outcome.code != Some(1) || !says(&text) {
            return Err("not said what it is".to_owned());
        }
        let begun = if self.strike.action == Action::Upgrade { 2 } else { 1 };
        let Some(last) = self.history.get(begun - 1) else {
            return match self.history.last() {
                Some(last) if last.status != "deployed" => Err("the record before".to_owned()),
                _ => Ok(End::Refused),
            };
        };
        let end = match last.status.as_str() {
            "failed" if says(&last.description) => End::Failed,
            "failed" => return Err("the record does not say why".to_owned()),
            "deployed" if text.contains("ichor release repair r") => End::Deployed,
            _ if text.contains("ichor release repair r") => End::Pending,
            _ => return Err("a record that nobody was told of".to_owned()),
        };
        if course == Course::OneObject && end != End::Failed {
            return Err("the record could be written".to_owned());
        }
        Ok(end)
    }
}

/// Runs the trial's action.
pub(crate) fn act(trial: &Trial<'_>, kubeconfig: &std::path::Path) -> Outcome {
    let mut arguments = trial.arguments(trial.action);
    arguments.extend(["--request-timeout", REQUEST_TIMEOUT].map(str::to_owned));
    Program::Ichor.sealed(kubeconfig).run(&arguments)
}

pub(crate) fn told(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stderr).into_owned()
}
