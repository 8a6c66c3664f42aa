//! However a plane's process ends, no server and no file stays behind.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plane::support::or_skip;
use plane::{Plane, PlaneOptions};

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Process ids that have this text in their command line.
fn processes_with(text: &str) -> Vec<u32> {
    let output = Command::new("ps").args(["-eo", "pid,args", "-ww"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains(text))
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect()
}

/// `hack/cluster`'s program with a runtime folder of its own.
fn cluster(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plane"));
    command.args(arguments).env("XDG_RUNTIME_DIR", folder).stdin(Stdio::null());
    command
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ichor-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_ends_with_its_value_even_in_a_panic() {
    let Some(plane) = or_skip(Plane::start(PlaneOptions::default()).await) else { return };
    let folder = plane.folder().to_path_buf();
    let servers: Vec<u32> = plane.processes().iter().map(|(_, pid)| *pid).collect();
    let panicked = std::thread::spawn(move || {
        let _plane = plane;
        panic!("a test fails");
    });
    assert!(panicked.join().is_err());
    let own = std::process::id();
    assert!(servers.iter().all(|pid| *pid == own || !plane::is_running(*pid)));
    assert!(!folder.exists());
    wait_until("the watchdog is gone", || processes_with(&folder.display().to_string()).is_empty());
}

#[test]
fn a_cluster_comes_up_is_used_and_leaves_nothing() {
    let Some(peer) = or_skip(plane::find_peer("kube-apiserver")) else { return };
    let runtime = scratch("cluster-runtime");
    let began = Instant::now();
    let up = plane::support::run(&mut cluster(&runtime, &["up", "--nodes", "5"])).unwrap();
    let took = began.elapsed();
    println!("up in {:.1} s", took.as_secs_f64());
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(up.contains(&peer.version), "{up}");
    let kubeconfig = plane::support::run(&mut cluster(&runtime, &["kubeconfig"])).unwrap();
    let kubeconfig = PathBuf::from(kubeconfig.trim());
    let mut kubectl = Command::new(plane::find_peer("kubectl").unwrap().path);
    kubectl.env("KUBECONFIG", &kubeconfig).args(["get", "nodes", "--no-headers"]);
    let nodes = plane::support::run(&mut kubectl).unwrap();
    assert_eq!(nodes.matches(" Ready ").count(), 5, "{nodes}");
    let status = plane::support::run(&mut cluster(&runtime, &["status"])).unwrap();
    assert!(status.contains("kube-scheduler"), "{status}");
    assert!(plane::support::run(&mut cluster(&runtime, &["up"])).is_err(), "only one of a name");

    let folder = kubeconfig.parent().unwrap().display().to_string();
    plane::support::run(&mut cluster(&runtime, &["down"])).unwrap();
    assert!(!Path::new(&folder).exists());
    assert_eq!(std::fs::read_dir(&runtime).unwrap().count(), 0, "no file is left");
    wait_until("no process is left", || processes_with(&folder).is_empty());
    assert!(plane::support::run(&mut cluster(&runtime, &["status"])).is_err());
    std::fs::remove_dir_all(&runtime).unwrap();
}

#[test]
fn a_killed_process_takes_its_servers_with_it() {
    if or_skip(plane::find_peer("kube-apiserver")).is_none() {
        return;
    }
    let runtime = scratch("cluster-killed");
    let mut serve = cluster(&runtime, &["serve", "--nodes", "1"]).spawn().unwrap();
    let status = || plane::support::run(&mut cluster(&runtime, &["kubeconfig"])).ok();
    let mut kubeconfig = None;
    wait_until("the cluster is up", || {
        kubeconfig = status();
        kubeconfig.is_some()
    });
    let folder = PathBuf::from(kubeconfig.unwrap().trim()).parent().unwrap().to_path_buf();
    let text = folder.display().to_string();
    assert!(processes_with(&text).len() >= 4);
    serve.kill().unwrap();
    serve.wait().unwrap();
    wait_until("the watchdog has ended the servers", || processes_with(&text).is_empty());
    wait_until("the folder is gone", || !folder.exists());
    std::fs::remove_dir_all(&runtime).unwrap();
}
