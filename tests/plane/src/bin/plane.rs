//! `hack/cluster`: a plane that outlives the command that started it.
//!
//! `up` starts `serve` in the background and waits until it is ready; `down` asks it to end. What
//! is running is kept in one small file per cluster, in a folder of the user's.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use plane::{Error, NodeSpec, Plane, PlaneOptions, Result, SavedState};
use serde::{Deserialize, Serialize};

const USAGE: &str = "\
usage: hack/cluster up|down|status|kubeconfig [--name NAME]

  up            start a control plane and wait until it is ready
    --nodes N             number of nodes (5)
    --talos VERSION       the nodes run Talos of this version
    --image IMAGE=PATH    pods with this image execute this local program (repeatable)
    --state FOLDER        start from a saved state
  down          stop it and remove everything
    --save FOLDER         keep its state first
  status        say what runs and how much memory it takes
  kubeconfig    print the path of the admin's kubeconfig

exit status: 0 done, 1 an error or not running
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut output = std::io::stdout().lock();
    let result = Arguments::parse(&words).and_then(|arguments| run(&arguments, &mut output));
    match result {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do when standard error is closed.
            drop(writeln!(std::io::stderr(), "hack/cluster: {}", error.chain()));
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, Default)]
struct Arguments {
    command: String,
    name: String,
    nodes: usize,
    talos: Option<String>,
    images: BTreeMap<String, PathBuf>,
    state: Option<PathBuf>,
    save: Option<PathBuf>,
    /// As given, to be handed on to `serve`.
    words: Vec<String>,
}

impl Arguments {
    fn parse(words: &[String]) -> Result<Self> {
        let bad = |reason: String| Error::NotPossible { reason: format!("{reason}\n\n{USAGE}") };
        let mut words_left = words.iter();
        let command = words_left.next().cloned().unwrap_or_default();
        let mut arguments = Self {
            command,
            name: "default".to_owned(),
            nodes: 5,
            words: words.iter().skip(1).cloned().collect(),
            ..Self::default()
        };
        while let Some(flag) = words_left.next() {
            let value = words_left.next().ok_or_else(|| bad(format!("{flag} needs a value")))?;
            match flag.as_str() {
                "--name" => arguments.name.clone_from(value),
                "--nodes" => {
                    arguments.nodes =
                        value.parse().map_err(|_| bad(format!("{value} is no number")))?;
                }
                "--talos" => arguments.talos = Some(value.clone()),
                "--image" => {
                    let (image, path) =
                        value.split_once('=').ok_or_else(|| bad(format!("{value}: no `=`")))?;
                    arguments.images.insert(image.to_owned(), PathBuf::from(path));
                }
                "--state" => arguments.state = Some(PathBuf::from(value)),
                "--save" => arguments.save = Some(PathBuf::from(value)),
                _ => return Err(bad(format!("unknown flag {flag}"))),
            }
        }
        if arguments.name.is_empty() || arguments.name.contains(['/', '.']) {
            return Err(bad(format!("{:?} is no name for a cluster", arguments.name)));
        }
        Ok(arguments)
    }

    fn options(&self) -> PlaneOptions {
        let mut nodes = NodeSpec::several(self.nodes);
        if let Some(version) = &self.talos {
            nodes = nodes.into_iter().map(|node| node.talos(version)).collect();
        }
        PlaneOptions { nodes, images: self.images.clone(), ..PlaneOptions::default() }
    }
}

/// What is known of a running cluster.
#[derive(Debug, Serialize, Deserialize)]
struct Running {
    pid: u32,
    url: String,
    kubeconfig: PathBuf,
    version: String,
    processes: Vec<(String, u32)>,
}

/// The files of one cluster.
struct Files {
    folder: PathBuf,
    record: PathBuf,
    log: PathBuf,
    save: PathBuf,
}

impl Files {
    fn of(name: &str) -> Result<Self> {
        let base =
            std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let user = std::env::var("USER").unwrap_or_default();
        let folder = base.join(format!("ichor-clusters-{user}"));
        fs::create_dir_all(&folder).map_err(|source| Error::File {
            what: "cannot make the folder",
            path: folder.clone(),
            source,
        })?;
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        Ok(Self { record: file("json"), log: file("log"), save: file("save"), folder })
    }

    /// The record of a cluster that runs.
    fn running(&self) -> Option<Running> {
        let running: Running =
            serde_json::from_str(&fs::read_to_string(&self.record).ok()?).ok()?;
        plane::is_running(running.pid).then_some(running)
    }

    fn need_running(&self, name: &str) -> Result<Running> {
        self.running()
            .ok_or_else(|| Error::NotPossible { reason: format!("no cluster {name} is running") })
    }

    /// Removes what a cluster leaves here, and the folder when it was the last.
    fn remove(&self) {
        for file in [&self.record, &self.log, &self.save] {
            drop(fs::remove_file(file));
        }
        drop(fs::remove_dir(&self.folder));
    }
}

fn run(arguments: &Arguments, output: &mut impl Write) -> Result<ExitCode> {
    let print = |output: &mut dyn Write, text: String| {
        output.write_all(text.as_bytes()).map_err(|source| Error::File {
            what: "cannot write",
            path: PathBuf::from("standard output"),
            source,
        })
    };
    match arguments.command.as_str() {
        "up" => {
            let began = Instant::now();
            let running = up(arguments)?;
            let seconds = began.elapsed().as_secs_f64();
            let path = running.kubeconfig.display();
            let version = &running.version;
            print(
                output,
                format!(
                    "Kubernetes {version} is ready at {} after {seconds:.1} s\nexport KUBECONFIG={path}\n",
                    running.url
                ),
            )?;
        }
        "down" => down(arguments)?,
        "status" => {
            let running = Files::of(&arguments.name)?.need_running(&arguments.name)?;
            let footprint = plane::Meter::new(&running.processes).footprint();
            let mut lines = vec![format!("Kubernetes {} at {}", running.version, running.url)];
            for ((name, pid), (_, bytes)) in running.processes.iter().zip(&footprint.processes) {
                lines.push(format!("{name:<26} {pid:>8} {:>6} MiB", bytes / 1_048_576));
            }
            lines.push(format!("{:<35} {:>6} MiB\n", "all", footprint.total() / 1_048_576));
            print(output, lines.join("\n"))?;
        }
        "kubeconfig" => {
            let running = Files::of(&arguments.name)?.need_running(&arguments.name)?;
            print(output, format!("{}\n", running.kubeconfig.display()))?;
        }
        "serve" => serve(arguments)?,
        "help" | "--help" | "-h" => print(output, USAGE.to_owned())?,
        _ => return Err(Error::NotPossible { reason: format!("what to do?\n\n{USAGE}") }),
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts `serve` and waits for its record.
fn up(arguments: &Arguments) -> Result<Running> {
    let files = Files::of(&arguments.name)?;
    if files.running().is_some() {
        let reason = format!("cluster {} is running already", arguments.name);
        return Err(Error::NotPossible { reason });
    }
    files.remove();
    let files = Files::of(&arguments.name)?;
    let program = "hack/cluster serve".to_owned();
    let failed = |source| Error::Start { program: program.clone(), source };
    let log = fs::File::create(&files.log).map_err(failed)?;
    let errors = log.try_clone().map_err(failed)?;
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .arg("serve")
        .args(&arguments.words)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let deadline = Instant::now() + Duration::from_mins(3);
    loop {
        if let Some(running) = files.running() {
            return Ok(running);
        }
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || Instant::now() > deadline {
            drop(child.kill());
            let log = fs::read_to_string(&files.log).unwrap_or_default();
            files.remove();
            let problem = "did not start".to_owned();
            return Err(Error::Server { server: "the cluster".to_owned(), problem, log });
        }
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Asks `serve` to end and waits for it.
fn down(arguments: &Arguments) -> Result<()> {
    let files = Files::of(&arguments.name)?;
    let Some(running) = files.running() else {
        files.remove();
        return Err(Error::NotPossible {
            reason: format!("no cluster {} is running", arguments.name),
        });
    };
    if let Some(to) = &arguments.save {
        let to = std::path::absolute(to).unwrap_or_else(|_| to.clone());
        fs::write(&files.save, to.display().to_string()).map_err(|source| Error::File {
            what: "cannot write",
            path: files.save.clone(),
            source,
        })?;
    }
    plane::signal(running.pid, plane::Signal::SIGTERM);
    let deadline = Instant::now() + Duration::from_secs(30);
    while plane::is_running(running.pid) {
        if Instant::now() > deadline {
            // The watchdog then ends the servers.
            plane::signal(running.pid, plane::Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let failed = fs::read_to_string(&files.log).unwrap_or_default();
    files.remove();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::Server {
        server: "the cluster".to_owned(),
        problem: "did not end well".to_owned(),
        log: failed,
    })
}

/// Runs a plane until it is asked to end.
fn serve(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Start { program: "the runtime".to_owned(), source })?;
    runtime.block_on(async {
        let files = Files::of(&arguments.name)?;
        let plane = match &arguments.state {
            Some(folder) => Plane::restore(&SavedState::open(folder)?, arguments.options()).await?,
            None => Plane::start(arguments.options()).await?,
        };
        let running = Running {
            pid: std::process::id(),
            url: plane.url(),
            kubeconfig: plane.kubeconfig(),
            version: plane.kubernetes_version().to_owned(),
            processes: plane.processes(),
        };
        let bad = |source| Error::Document { what: "the cluster's record".to_owned(), source };
        let text = serde_json::to_string_pretty(&running).map_err(bad)?;
        // Moved into place, so that nobody reads half of it.
        let part = files.record.with_extension("part");
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &files.record));
        let path = files.record.clone();
        written.map_err(|source| Error::File { what: "cannot write", path, source })?;

        let program = "the signal handler".to_owned();
        let failed = |source| Error::Start { program, source };
        let kind = tokio::signal::unix::SignalKind::terminate();
        let mut terminated = tokio::signal::unix::signal(kind).map_err(failed)?;
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        let Ok(to) = fs::read_to_string(&files.save) else {
            plane.stop();
            return Ok(());
        };
        plane.save(&PathBuf::from(to)).map(drop)
    })
}
