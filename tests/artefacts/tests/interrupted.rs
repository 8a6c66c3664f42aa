//! A signal in the midst of it leaves nothing half made.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test program")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use artefacts::server::Server;
use helm_repo::package;
use helm_rs::chart::{Chart, File, Metadata};
use test_support::place;

/// Files of the chart: so many that unpacking them takes a while.
const FILES: usize = 20_000;

fn chart() -> Chart {
    let mut chart = Chart::new(Metadata {
        name: "many".to_owned(),
        version: "1.0.0".to_owned(),
        api_version: "v2".to_owned(),
        ..Metadata::default()
    });
    chart.files = (0..FILES)
        .map(|number| File {
            name: format!("files/{}/{number}.txt", number % 97),
            data: b"x".to_vec().into(),
        })
        .collect();
    chart
}

fn start(folder: &Path, words: &[&str]) -> Child {
    Command::new(place::ichor())
        .arg("chart")
        .args(words)
        .env_clear()
        .env("HOME", folder.join("home"))
        .env("TMPDIR", folder.join("tmp"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until something half made is there; false when the program is done before.
fn is_under_way(child: &mut Child, folder: &Path, prefix: &str) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_mins(1) {
        if names(folder).iter().any(|name| name.starts_with(prefix)) {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
    }
    panic!("nothing happens in {}", folder.display());
}

fn send(signal: &str, child: &Child) {
    let done = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_chart_that_is_being_unpacked() {
    let world = tempfile::tempdir().unwrap();
    let folder = world.path();
    for name in ["www", "tmp", "home"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    package::save(&chart(), &folder.join("www"), 0).unwrap();
    let server = Server::start(&folder.join("www"));
    let address = format!("http://127.0.0.1:{}/many-1.0.0.tgz", server.http);
    let mut struck = 0;
    for round in 0..12 {
        let (signal, code) = if round % 2 == 0 { ("-INT", 130) } else { ("-TERM", 143) };
        let mut child = start(folder, &["pull", &address, "--untar", "--untardir", "out"]);
        let is_there = is_under_way(&mut child, &folder.join("out"), ".ichor-");
        std::thread::sleep(Duration::from_millis(round * 7));
        if is_there && child.try_wait().unwrap().is_none() {
            send(signal, &child);
        }
        let status = child.wait().unwrap();
        if status.code() == Some(0) {
            // Done before the signal came.
            fs::remove_dir_all(folder.join("out")).unwrap();
            continue;
        }
        struck += 1;
        assert_eq!(status.code(), Some(code), "round {round}");
        assert_eq!(names(&folder.join("out")), Vec::<String>::new(), "round {round}");
        assert_eq!(names(&folder.join("tmp")), Vec::<String>::new(), "round {round}");
    }
    println!("{struck} of 12 rounds struck in time");
    assert!(struck > 0);
}

/// A server that never ends, and a dependency that is waited for.
#[test]
fn dependencies_that_are_being_fetched() {
    let world = tempfile::tempdir().unwrap();
    let folder = world.path();
    for name in ["p", "tmp", "home"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).unwrap_or_default();
                let body =
                    "apiVersion: v1\nentries: {a: [{name: a, version: 1.0.0, urls: [a.tgz]}]}\n";
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                if String::from_utf8_lossy(&request[..length]).contains("index.yaml") {
                    drop(stream.write_all(answer.as_bytes()));
                } else {
                    std::thread::sleep(Duration::from_mins(1));
                }
            });
        }
    });
    let text = format!(
        "apiVersion: v2\nname: p\nversion: 0.1.0\ndependencies:\n- name: a\n  version: 1.x\n  repository: http://{address}\n"
    );
    fs::write(folder.join("p/Chart.yaml"), text).unwrap();
    let added =
        start(folder, &["repo", "add", "here", &format!("http://{address}")]).wait().unwrap();
    assert!(added.success());
    let mut child = start(folder, &["dependency", "update", "p"]);
    assert!(is_under_way(&mut child, &folder.join("p"), "tmpcharts-"));
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut left = names(&folder.join("p"));
    left.sort();
    assert_eq!(left, ["Chart.yaml", "charts"]);
    assert_eq!(names(&folder.join("p/charts")), Vec::<String>::new());
}
