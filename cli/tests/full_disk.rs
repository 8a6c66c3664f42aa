//! Writing that fails half-way: nothing is under the final name, and nothing is left behind unless
//! the program itself was killed.
#![cfg(unix)]
#![expect(clippy::expect_used, reason = "test code: a panic is how a test fails")]

use std::fs;
use std::path::Path;
use std::process::Command;

use helm_rs::chart::{BufferedFile, Limits, load_files};
use helm_rs::release::{NewRecord, Status, encode};

/// A dump with one record, whose chart has a small file and one of 64 KiB that does not compress.
fn dump(folder: &Path) -> String {
    let mut state = 1_u64;
    let noise = (0..65_536_u32).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    let file =
        |name: &str, data: Vec<u8>| BufferedFile { name: name.to_owned(), data: data.into() };
    let files = vec![
        file("Chart.yaml", b"apiVersion: v2\nname: web\nversion: 1.0.0\n".to_vec()),
        file("small.txt", b"small".to_vec()),
        file("templates/large.bin", noise.collect()),
    ];
    let chart = load_files(files, &Limits::default(), &mut Vec::new()).expect("a chart");
    let record = NewRecord {
        name: "web",
        namespace: "shop",
        revision: 1,
        chart: &chart,
        config: &goyaml::Map::default(),
        manifest: b"",
        hooks: &[],
        notes: b"",
        first_deployed: "2026-01-02T03:04:05Z",
        last_deployed: "2026-01-02T03:04:05Z",
        status: &Status::Deployed,
        description: "Install complete",
    };
    let json = record.build().expect("a record").to_json();
    let object = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "sh.helm.release.v1.web.v1",
            "namespace": "shop",
            "labels": { "name": "web", "owner": "helm", "status": "deployed", "version": "1" },
        },
        "data": { "release": encode(&json).expect("it encodes") },
    });
    let path = folder.join("dump.json");
    fs::write(&path, object.to_string()).expect("it is written");
    path.to_string_lossy().into_owned()
}

/// Runs the program where no file may become larger than 4 KiB: whether it was killed for that, and
/// what it says.
fn limited(arguments: &[&str], is_killed: bool) -> String {
    let signal = if is_killed { "" } else { "trap '' XFSZ; " };
    // A block is 512 bytes to some shells and 1,024 to others.
    let script = format!("{signal}ulimit -c 0; ulimit -f 4; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_ichor"), "release"]).args(arguments);
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), if is_killed { None } else { Some(1) }, "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn what_is_half_written_has_no_final_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = dump(folder.path());
    for command in [&["export"][..], &["export", "-o", "json"], &["chart"], &["chart", "--archive"]]
    {
        let to = folder.path().join("to");
        let given = to.to_string_lossy().into_owned();
        let arguments = [command, &["web", "--from", &dump, "--to", &given]].concat();
        let told = limited(&arguments, false);
        assert!(told.contains("File too large"), "{arguments:?}: {told}");
        assert_eq!(names(&to), [""; 0], "{arguments:?}");
        limited(&arguments, true);
        let left = names(&to);
        assert_eq!(left.len(), 1, "{arguments:?}: {left:?}");
        assert!(left.iter().all(|name| name.starts_with(".ichor-")), "{arguments:?}: {left:?}");
        // What is left does not keep the next run from doing it.
        let mut whole = Command::new(env!("CARGO_BIN_EXE_ichor"));
        let done = whole.arg("release").args(&arguments).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(names(&to).len(), 2, "{arguments:?}");
        fs::remove_dir_all(&to).expect("it is removed");
    }
}
