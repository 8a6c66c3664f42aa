//! Lifecycles of this project's charts and of Cilium: whoever does which step, real Helm or ichor,
//! after every step there are the same objects, records, exit status and messages as when Helm does
//! them all. `hack/proof lifecycles`.

#![expect(clippy::expect_used, reason = "test code: a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "what was compared is told to whoever reads the output")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use live::at_once;
use live::lifecycle::{CILIUM, Life, Script, scripts};
use live::objects::{Objects, differences, read};
use plane::support::or_skip;
use plane::{Plane, PlaneOptions};

/// Commands under way at once: much of their time they wait.
const WORKERS: [(); 6] = [(); 6];

/// Lives side by side, the first of each lifecycle done by Helm alone.
struct World<'l> {
    /// Each with what it is compared with.
    lives: Vec<(Life<'l>, usize)>,
    faults: Vec<String>,
    commands: usize,
}

impl<'l> World<'l> {
    /// Each lifecycle once by Helm on one plane, and with each of its mixes on the other.
    fn new(planes: &'l [Plane; 2], scripts: &'l [(Script, Vec<u64>)]) -> Self {
        let [helm, other] = planes;
        let mut wanted = Vec::new();
        for (script, mixes) in scripts {
            let reference = wanted.len();
            wanted.push((helm, script, 0, reference));
            wanted.extend(mixes.iter().map(|mix| (other, script, *mix, reference)));
        }
        let lives = at_once(&WORKERS, &wanted, |_, (plane, script, mix, reference), ()| {
            (Life::new(plane, script, *mix), *reference)
        });
        Self { lives, faults: Vec::new(), commands: 0 }
    }

    /// Does everything, a step of all at a time. What is no namespace's, such as definitions, is
    /// there for the others when one life has made it: the first ones go ahead.
    fn live(&mut self) {
        let steps = self.lives.iter().map(|(life, _)| life.script.steps()).max().unwrap_or(0);
        for step in 0..steps {
            let mut said: Vec<Option<String>> = vec![None; self.lives.len()];
            for ahead in [true, false] {
                let is_first = |at: usize| {
                    let reference = self.lives[at].1;
                    at <= reference + 1
                };
                let now: Vec<usize> =
                    (0..self.lives.len()).filter(|at| is_first(*at) == ahead).collect();
                let heard = at_once(&WORKERS, &now, |_, at, ()| self.lives[*at].0.live(step));
                now.into_iter().zip(heard).for_each(|(at, heard)| said[at] = heard);
            }
            self.commands += said.iter().flatten().count();
            self.compare(step, &said);
        }
    }

    fn compare(&mut self, step: usize, said: &[Option<String>]) {
        let fault = |life: &Life<'_>, what: &str| {
            format!("{}, step {step} ({}): {what}", life.title(), life.script.step(step))
        };
        let mut found = Vec::new();
        for (at, (life, reference)) in self.lives.iter().enumerate() {
            if let (Some(wanted), Some(got)) = (&said[*reference], &said[at])
                && wanted != got
            {
                found.push(fault(life, &format!("\n--- Helm\n{wanted}--- mixed\n{got}")));
            }
        }
        // Controllers need a moment to follow.
        let began = Instant::now();
        let wrong = loop {
            let all = read_all(&self.lives);
            let mut wrong = Vec::new();
            for (at, (life, reference)) in self.lives.iter().enumerate() {
                let wanted = self.lives[*reference].0.objects(&all[*reference]);
                for difference in differences(&wanted, &life.objects(&all[at])) {
                    wrong.push(fault(life, &difference));
                }
            }
            if wrong.is_empty() || began.elapsed() > Duration::from_secs(15) {
                break wrong;
            }
        };
        found.extend(wrong);
        for fault in &found {
            println!("{fault}");
        }
        self.faults.append(&mut found);
    }
}

/// The objects of each life's plane; every plane is read once.
fn read_all(lives: &[(Life<'_>, usize)]) -> Vec<Arc<Objects>> {
    let mut planes: Vec<&Plane> = lives.iter().map(|(life, _)| life.plane()).collect();
    planes.sort_by_key(|plane| std::ptr::from_ref(*plane));
    planes.dedup_by_key(|plane| std::ptr::from_ref(*plane));
    let all = at_once(&WORKERS, &planes, |_, plane, ()| {
        Arc::new(read(plane).expect("the objects can be read"))
    });
    let place =
        |life: &Life<'_>| planes.iter().position(|plane| std::ptr::eq(*plane, life.plane()));
    lives.iter().filter_map(|(life, _)| Some(all[place(life)?].clone())).collect()
}

async fn planes() -> Option<[Plane; 2]> {
    or_skip(plane::find_peer("helm"))?;
    let (left, right) =
        tokio::join!(Plane::start(PlaneOptions::default()), Plane::start(PlaneOptions::default()));
    Some([or_skip(left)?, or_skip(right)?])
}

/// Mixes by a seed that a failure names.
struct Dice(u64);

impl Dice {
    /// The seed is `ICHOR_SEED`, or else this commit's and yours alike.
    fn new() -> Self {
        let seed = std::env::var("ICHOR_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(7);
        println!("ICHOR_SEED={seed}");
        Self(seed)
    }

    /// xorshift64*
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit
    }
}

/// What came of several worlds.
struct Tally {
    began: Instant,
    lives: usize,
    commands: usize,
    faults: Vec<String>,
}

impl Tally {
    fn new() -> Self {
        Self { began: Instant::now(), lives: 0, commands: 0, faults: Vec::new() }
    }

    /// Lives through each lifecycle in its mixes.
    fn live(&mut self, planes: &[Plane; 2], scripts: &[(Script, Vec<u64>)]) {
        let mut world = World::new(planes, scripts);
        world.live();
        self.lives += world.lives.len();
        self.commands += world.commands;
        self.faults.append(&mut world.faults);
    }

    fn end(self) {
        let Self { began, lives, commands, faults } = self;
        let seconds = began.elapsed().as_secs_f64();
        println!("{lives} lives, {commands} commands, {seconds:.0} s");
        assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
    }
}

/// Each lifecycle by ichor alone, and some of them in one mix.
#[tokio::test(flavor = "multi_thread")]
async fn by_ichor_and_in_a_mix() {
    let Some(planes) = planes().await else { return };
    let mut dice = Dice::new();
    let mixed = |(at, script): (usize, Script)| {
        let mix = 1 + dice.below(script.mixes().end - 2);
        let mixes = if at % 3 == 0 { vec![script.alone(), mix] } else { vec![script.alone()] };
        (script, mixes)
    };
    let scripts: Vec<(Script, Vec<u64>)> = scripts().into_iter().enumerate().map(mixed).collect();
    let mut tally = Tally::new();
    tally.live(&planes, &scripts);
    tally.end();
}

/// Each lifecycle by both in turns: whichever two steps follow each other, all four pairs of programs
/// have done them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof lifecycles pairs"]
async fn every_pair() {
    let Some(planes) = planes().await else { return };
    let in_turns = |script: Script| {
        let [one, other] = script.turns();
        let mixes = vec![script.alone(), one, other];
        (script, mixes)
    };
    let scripts: Vec<(Script, Vec<u64>)> = scripts().into_iter().map(in_turns).collect();
    let mut tally = Tally::new();
    tally.live(&planes, &scripts);
    tally.end();
}

/// The mixes of one lifecycle that are lived at the same time.
const AT_ONCE: usize = 24;

/// Every mix of every lifecycle, or of those in `ICHOR_LIFECYCLES`; where there are more than 512, as
/// many by chance.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof lifecycles all"]
async fn every_mix() {
    let Some(planes) = planes().await else { return };
    let wanted = std::env::var("ICHOR_LIFECYCLES").unwrap_or_default();
    let mut dice = Dice::new();
    let mut tally = Tally::new();
    for script in scripts() {
        if !wanted.is_empty() && !wanted.split(',').any(|name| name == script.name) {
            continue;
        }
        let all = script.mixes();
        let mixes: Vec<u64> = if all.end <= 512 {
            all.collect()
        } else {
            (0..512).map(|_| 1 + dice.below(all.end - 1)).collect()
        };
        println!("{}: {} mixes", script.name, mixes.len());
        for some in mixes.chunks(AT_ONCE) {
            tally.live(&planes, &[(script.clone(), some.to_vec())]);
        }
    }
    tally.end();
}

/// Cilium's objects have one name in a cluster, so that every life has a plane to itself.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof lifecycles cilium"]
async fn cilium() {
    let (Some(chart), Some(values)) =
        (or_skip(plane::cilium::chart("1.20.0")), or_skip(plane::cilium::values("02")))
    else {
        return;
    };
    let script = Script::read(CILIUM, &[("", chart), ("values", values)]);
    let mut tally = Tally::new();
    let [one, other] = script.turns();
    for mix in [script.alone(), one, other] {
        let Some(planes) = planes().await else { return };
        for plane in &planes {
            let client = plane.client().expect("a client");
            plane::cilium::create_stubs(&client).await.expect("the stubs are made");
        }
        tally.live(&planes, &[(script.clone(), vec![mix])]);
    }
    tally.end();
}
