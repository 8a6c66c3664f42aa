//! Running a pod's command for real, with the machine's file system as a copy of its own.
//!
//! The process gets a mount namespace in which an overlay of `/` is its root: it sees this machine's
//! programs, and what it writes stays in the pod's folder. Volumes are bind-mounted at their paths,
//! so that a token is at the usual place. The chain `unshare`, `sh`, `chroot`, `env`, program is one
//! process all the way, so the process id is the program's own.
//!
//! What a pod asks for and does not get: an image, a user (`runAsUser`), a network or process
//! namespace, probes, lifecycle hooks.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::{Container, Pod};
use nix::sys::signal::Signal;
use tokio::process::Command;
use tokio::sync::{Notify, watch};

use super::context::Context;
use super::environment::{Environment, expand};
use super::{EXECUTE, volumes};
use crate::process::{record_pid, signal, signal_group};

/// Builds the root and goes into it. Arguments: folder, program, working directory, then what `env`
/// is to run. Lines of `mounts` are source, target and `ro` or `rw`, separated by tabs.
const SCRIPT: &str = r#"
set -eu
base=$1 program=$2 workdir=$3
shift 3
root=$base/root
mount -t tmpfs ichor "$base/scratch"
mkdir "$base/scratch/upper" "$base/scratch/work"
mount -t overlay ichor -o "lowerdir=/,upperdir=$base/scratch/upper,workdir=$base/scratch/work" "$root"
for system in proc sys; do mount --rbind "/$system" "$root/$system"; done
# A /dev of its own: mount points are made in it, and the machine's is no copy.
mount -t tmpfs ichor "$root/dev"
mkdir "$root/dev/shm"
# Source, target, mode. Links such as /var/run are followed inside the new root only.
bind() {
  [ -e "$1" ] || mkdir -p "$1"
  place=$root$(chroot "$root" /usr/bin/realpath -m "$2")
  if [ -d "$1" ]; then mkdir -p "$place"; else mkdir -p "${place%/*}"; [ -e "$place" ] || : >"$place"; fi
  mount --bind "$1" "$place"
  if [ "$3" = ro ]; then mount -o remount,bind,ro "$place"; fi
}
for device in null zero full random urandom tty; do bind "/dev/$device" "/dev/$device" rw; done
# A program on another file system than / is not in the overlay.
[ -e "$root$program" ] || bind "$program" "$program" ro
tab=$(printf '\t')
while IFS=$tab read -r source target mode; do bind "$source" "$target" "$mode"; done <"$base/mounts"
mkdir -p "$root$workdir"
exec chroot "$root" /usr/bin/env -C "$workdir" -i "$@"
"#;

/// A program of an executed container.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    log: PathBuf,
    message: PathBuf,
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
struct Exit {
    code: i32,
}

/// The local program of a container, when it is to be executed: from the image table, or the
/// annotation's path, or (annotation `true`) the first word of its command.
pub(super) fn program(context: &Context, pod: &Pod, container: &Container) -> Option<PathBuf> {
    let annotations = pod.metadata.annotations.as_ref();
    let marked = annotations.and_then(|annotations| annotations.get(EXECUTE)).map(String::as_str);
    let image = bare_image(container.image.as_deref().unwrap_or_default());
    match marked {
        Some(path) if path.starts_with('/') => Some(PathBuf::from(path)),
        Some("true") => context
            .setup
            .images
            .get(image)
            .cloned()
            .or_else(|| container.command.as_ref()?.first().map(PathBuf::from)),
        _ => context.setup.images.get(image).cloned(),
    }
}

/// True when some container of the pod is to be executed.
pub(super) fn executes(context: &Context, pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| {
        let init = spec.init_containers.iter().flatten();
        init.chain(&spec.containers).any(|c| program(context, pod, c).is_some())
    })
}

/// An image's name without tag and digest.
fn bare_image(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// Tells whether pods can be executed here: mount namespaces and overlays must be allowed.
///
/// # Errors
///
/// The reason why not.
pub fn can_execute() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    let try_it = || {
        let script = "mount -t tmpfs t /mnt && mkdir /mnt/u /mnt/w /mnt/r && \
                      mount -t overlay o -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r && \
                      chroot /mnt/r /bin/true";
        let mut command = std::process::Command::new("unshare");
        command.args(unshare_arguments()).args(["sh", "-c", script]);
        let output = command.output().map_err(|error| format!("unshare: {error}"))?;
        if output.status.success() {
            Ok(())
        } else {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("no mount namespace with an overlay of /: {}", text.trim()))
        }
    };
    ANSWER.get_or_init(try_it).clone()
}

/// A user namespace too, unless we are root already.
fn unshare_arguments() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let root = uid.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0");
    let mut arguments = vec!["--mount", "--propagation", "private"];
    if !root {
        arguments.extend(["--user", "--map-root-user"]);
    }
    arguments.push("--");
    arguments
}

/// Where and as what a container starts.
pub(super) struct Place<'a> {
    /// The pod's folder with its `volumes`.
    pub(super) folder: &'a Path,
    /// How often it has been started before.
    pub(super) restarts: i32,
    /// Rung when the program ends.
    pub(super) wake: &'a Arc<Notify>,
}

/// Starts a container's program.
pub(super) fn start(
    context: &Arc<Context>,
    place: &Place<'_>,
    pod: &Pod,
    container: &Container,
    program: &Path,
    environment: &Environment,
) -> Result<Process, String> {
    can_execute()?;
    let Place { folder, restarts, wake } = place;
    let base = folder.join("containers").join(&container.name);
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    for name in ["root", "scratch"] {
        fs::create_dir_all(base.join(name)).map_err(failed("make the container's folder"))?;
    }
    let message = base.join("termination-message");
    fs::write(&message, "").map_err(failed("make the termination message"))?;
    let mounts = mounts(folder, &message, pod, container);
    fs::write(base.join("mounts"), mounts).map_err(failed("write the mounts"))?;
    let log = base.join(format!("{restarts}.log"));
    let output = File::create(&log).map_err(failed("make the log"))?;
    let errors = output.try_clone().map_err(failed("make the log"))?;

    let mut command = Command::new("unshare");
    command
        .args(unshare_arguments())
        .args(["sh", "-c", SCRIPT, "ichor-pod"])
        .arg(&base)
        .arg(program);
    command.arg(container.working_dir.as_deref().filter(|dir| !dir.is_empty()).unwrap_or("/"));
    command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
    command.arg(program);
    command.args(arguments(container, environment));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(failed("start the container"))?;
    let pid = child.id().ok_or("the container ended at once")?;
    let metadata = &pod.metadata;
    let owner = [metadata.namespace.as_deref(), metadata.name.as_deref()];
    context.add_process(pid, owner.map(Option::unwrap_or_default).join("/"));
    record_pid(&context.setup.folder, pid).map_err(|error| error.chain())?;
    let done = log.with_extension("done");
    let (sender, exit) = watch::channel(None);
    let (context, wake) = (Arc::clone(context), Arc::clone(*wake));
    tokio::spawn(async move {
        let status = child.wait().await;
        // What the program started and left running goes with it, as in a container.
        signal_group(pid, Signal::SIGKILL);
        context.remove_process(pid);
        // Tells whoever follows the log that no more comes.
        drop(File::create(done));
        let code = status.map_or(255, |status| {
            status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
        });
        sender.send_replace(Some(Exit { code }));
        wake.notify_one();
    });
    Ok(Process { pid, exit, log, message })
}

/// The command's words after the program: those of `command` behind its first, then `args`.
fn arguments(container: &Container, environment: &Environment) -> Vec<String> {
    let command = container.command.iter().flatten().skip(1);
    command.chain(container.args.iter().flatten()).map(|word| expand(word, environment)).collect()
}

fn mounts(folder: &Path, message: &Path, pod: &Pod, container: &Container) -> String {
    let path = container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
    // Shorter paths first, so that a mount inside another one is not hidden.
    let mut list = vec![(message.display().to_string(), path.to_owned(), "rw")];
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let hosts: Vec<(&str, &str)> = volumes
        .filter_map(|volume| Some((volume.name.as_str(), volume.host_path.as_ref()?.path.as_str())))
        .collect();
    for mount in container.volume_mounts.iter().flatten() {
        let host = hosts.iter().find(|(name, _)| *name == mount.name);
        let source = match host {
            // Through the overlay, so that nothing is written to the machine.
            Some((_, path)) => {
                format!("{}/containers/{}/root{path}", folder.display(), container.name)
            }
            None => folder.join("volumes").join(&mount.name).display().to_string(),
        };
        let source = match mount.sub_path.as_deref().filter(|path| !path.is_empty()) {
            Some(path) => format!("{source}/{path}"),
            None => source,
        };
        let read_only = mount.read_only.unwrap_or(false);
        list.push((source, mount.mount_path.clone(), if read_only { "ro" } else { "rw" }));
    }
    list.sort_by_key(|(_, target, _)| target.len());
    let line = |(source, target, mode): &(String, String, &str)| [source, target, *mode].join("\t");
    list.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Writes a pod's volumes into its folder.
pub(super) async fn write_volumes(
    context: &Context,
    folder: &Path,
    pod: &Pod,
    contents: Vec<(String, volumes::Content)>,
) -> Result<(), super::objects::Missing> {
    let spec = pod.spec.as_ref();
    for (name, content) in contents {
        let mut files = match content {
            volumes::Content::Files(files) => files,
            volumes::Content::Empty => volumes::Files::new(),
            volumes::Content::Host(_) => continue,
        };
        let volume = spec.and_then(|s| s.volumes.iter().flatten().find(|v| v.name == name));
        if let Some(volume) = volume {
            volumes::add_tokens(&context.client, pod, volume, &mut files).await?;
        }
        let path = folder.join("volumes").join(&name);
        volumes::write(&path, &files)
            .map_err(|error| super::objects::Missing(format!("volume {name}: {error}")))?;
    }
    Ok(())
}

impl Process {
    /// Exit code and termination message, once the process has ended.
    pub(super) fn ended(&self, container: &Container) -> Option<(i32, String)> {
        let exit = *self.exit.borrow();
        exit.map(|exit| (exit.code, self.termination_message(container, exit.code)))
    }

    /// Asks the process to end.
    pub(super) fn terminate(&self) {
        signal(self.pid, Signal::SIGTERM);
    }

    /// Kills the process and what it started.
    pub(super) fn kill(&self) {
        signal_group(self.pid, Signal::SIGKILL);
    }

    /// Mirrors `pkg/kubelet/kuberuntime/kuberuntime_container.go`, `getTerminationMessage`: 4 KiB of
    /// the file, or the end of the log when the file is empty, the policy says so and it failed.
    fn termination_message(&self, container: &Container, code: i32) -> String {
        let message = read_limited(&self.message, 4096);
        let policy = container.termination_message_policy.as_deref();
        if message.is_empty() && code != 0 && policy == Some("FallbackToLogsOnError") {
            let log = fs::read(&self.log).unwrap_or_default();
            let start = log.len().saturating_sub(2048);
            return String::from_utf8_lossy(log.get(start..).unwrap_or_default()).into_owned();
        }
        message
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit.borrow().is_none() {
            self.kill();
        }
    }
}

fn read_limited(path: &Path, limit: u64) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        drop(file.take(limit).read_to_end(&mut bytes));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_without_tag_and_digest() {
        assert_eq!(bare_image("quay.io:443/a/b:v1@sha256:00"), "quay.io:443/a/b");
        assert_eq!(bare_image("localhost:5000/ichor"), "localhost:5000/ichor");
        assert_eq!(bare_image("ichor:dev"), "ichor");
    }
}
