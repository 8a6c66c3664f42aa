//! Child processes that never outlive the test that started them.
//!
//! Three nets, since a test may return, panic or be killed:
//!
//! - [`Server`] kills its process when it is dropped;
//! - [`Folder`] holds a watchdog process whose standard input is a pipe from here. The pipe closes
//!   however this process ends, `SIGKILL` included; then the watchdog kills what the folder's
//!   `pids` file names and removes the folder;
//! - the watchdog and the servers run in process groups of their own, so that a Ctrl-C or a test
//!   runner that kills its group does not take the watchdog with it.
//!
//! `PR_SET_PDEATHSIG` is not used: it fires when the *thread* that started a child ends, and a test
//! thread ends long before the plane that its siblings share.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::error::{Error, Result};

/// Ends what is left of a plane: waits for the end of its standard input, kills the processes of
/// the `pids` file with their groups (each leads one; a process counts only while its start time is
/// the recorded one, since process ids are used again) and removes the folder.
const WATCHDOG: &str = r#"
trap '' INT TERM HUP QUIT
cat >/dev/null
[ -d "$1" ] || exit 0
for round in 1 2; do
  while read -r pid start; do
    now=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f20)
    [ "$now" = "$start" ] && kill -s KILL -- "-$pid" 2>/dev/null
  done <"$1/pids"
  sleep 0.2
done
rm -rf "$1"
"#;

/// A temporary folder with everything that one plane writes, and its watchdog.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    watchdog: Option<Child>,
}

impl Folder {
    /// Makes a fresh folder under the system's temporary folder and starts its watchdog.
    ///
    /// # Errors
    ///
    /// When the folder cannot be made or `sh` cannot be started.
    pub fn create() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("ichor-plane-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => break path,
                // A folder of a killed run whose process id came round again.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::file("cannot make the folder", path)(error)),
            }
        };
        restrict(&path)?;
        let pids = path.join("pids");
        File::create(&pids).map_err(Error::file("cannot write", &pids))?;
        let mut folder = Self { path, watchdog: None };
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "ichor-plane-watchdog"])
            .arg(&folder.path)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Start { program: "sh".to_owned(), source })?;
        folder.watchdog = Some(watchdog);
        Ok(folder)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the watchdog of a process.
    pub(crate) fn record(&self, pid: u32) -> Result<()> {
        record_pid(&self.path, pid)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The watchdog does nothing when the folder is gone, so an orderly end costs no wait.
        let removed = fs::remove_dir_all(&self.path).is_ok();
        if let Some(mut watchdog) = self.watchdog.take() {
            drop(watchdog.stdin.take());
            if removed {
                drop(watchdog.wait());
            }
        }
    }
}

/// Makes a folder readable by its owner alone: it holds keys and tokens.
fn restrict(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .map_err(Error::file("cannot restrict", path))
}

/// Appends a process to the `pids` file of a plane's folder.
pub(crate) fn record_pid(folder: &Path, pid: u32) -> Result<()> {
    let path = folder.join("pids");
    let start = start_time(pid).unwrap_or_default();
    OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{pid} {start}\n").as_bytes()))
        .map_err(Error::file("cannot write", path))
}

/// When a process started, in clock ticks since boot: field 22 of `/proc/PID/stat`.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets and may hold spaces.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19).map(str::to_owned)
}

/// True while the process with this id runs (a zombie does not).
pub fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| !rest.starts_with(['Z', 'X'])))
        .unwrap_or(false)
}

/// Sends a signal to one process; a process that is gone is no error.
pub fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // The only other answer, "no such process", is what the caller wants.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Sends a signal to a process group, named by its leader; a group that is gone is no error.
pub(crate) fn signal_group(leader: u32, signal: Signal) {
    if let Ok(leader) = i32::try_from(leader) {
        let _ = killpg(Pid::from_raw(leader), signal);
    }
}

/// A server of the plane: one process and its log.
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts a program with its output appended to `log/NAME.log` in the plane's folder.
    ///
    /// # Errors
    ///
    /// When the program cannot be started or its log cannot be written.
    pub fn start(
        folder: &Folder,
        name: &'static str,
        program: &Path,
        arguments: &[String],
    ) -> Result<Self> {
        let logs = folder.path().join("log");
        fs::create_dir_all(&logs).map_err(Error::file("cannot make the folder", &logs))?;
        let log = logs.join(format!("{name}.log"));
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(Error::file("cannot write", &log))?;
        let errors = output.try_clone().map_err(Error::file("cannot write", &log))?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            // Nothing of the caller's environment (proxies, KUBECONFIG) reaches a server.
            .env_clear()
            .env("HOME", folder.path())
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Start { program: program.display().to_string(), source })?;
        let server = Self { name, child, log };
        folder.record(server.pid())?;
        Ok(server)
    }

    /// Name of the server, such as `kube-apiserver`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status when it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The end of the server's log.
    pub fn log_end(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines.iter().skip(lines.len().saturating_sub(15)).copied().collect::<Vec<_>>().join("\n")
    }

    /// An error about this server with the end of its log.
    pub fn problem(&self, problem: impl Into<String>) -> Error {
        Error::Server { server: self.name.to_owned(), problem: problem.into(), log: self.log_end() }
    }

    /// Asks the process to end, and kills it when it has not after `patience`.
    pub fn stop(mut self, patience: Duration) {
        signal(self.pid(), Signal::SIGTERM);
        let deadline = Instant::now() + patience;
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.ended().is_none() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}
