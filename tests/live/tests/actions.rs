//! Hooks, rollback, uninstall, test, and what `--atomic` and its like undo: real Helm on one server
//! and ichor on another one leave the same objects, records, exit status and messages.

#![expect(clippy::print_stdout, reason = "what was compared is told to whoever reads the output")]

use std::time::Instant;

use live::pair::{both, same_objects, sides};
use live::{Program, Side, chart};

/// Both programs, and what was found to differ.
struct Bed {
    helm: Side,
    ichor: Side,
    chart: String,
    faults: Vec<String>,
    commands: usize,
    began: Instant,
}

impl Bed {
    async fn open() -> Option<Self> {
        let (helm, ichor) = sides().await?;
        let chart = chart("hooks").to_string_lossy().into_owned();
        Some(Self { helm, ichor, chart, faults: Vec::new(), commands: 0, began: Instant::now() })
    }

    /// Runs a command on both sides; `@` stands for the chart.
    fn run(&mut self, command: &str) {
        let words: Vec<&str> = command
            .split_whitespace()
            .map(|word| if word == "@" { self.chart.as_str() } else { word })
            .collect();
        self.commands += 1;
        both(&self.helm, &self.ichor, &words, &mut self.faults);
    }

    /// Compares all objects.
    fn compare(&mut self, when: &str) {
        let count = same_objects(&self.helm, &self.ichor, when, &mut self.faults);
        println!("{when}: {count} objects on each side");
    }

    fn kubectl(&self, arguments: &[&str]) {
        for side in [&self.helm, &self.ichor] {
            live::trial::kubectl(&side.plane, arguments);
        }
    }

    /// Each program goes on with what the other made.
    fn swap(&mut self) {
        for side in [&mut self.helm, &mut self.ichor] {
            side.program = match side.program {
                Program::Helm => Program::Ichor,
                Program::Ichor => Program::Helm,
            };
        }
        std::mem::swap(&mut self.helm, &mut self.ichor);
    }

    fn end(self) {
        let seconds = self.began.elapsed().as_secs_f64();
        println!("{} commands, {seconds:.0} s", self.commands);
        let faults = &self.faults;
        assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
    }
}

/// Values for one hook.
fn hook(fields: &str) -> String {
    format!("--set-json hooks=[{{{fields}}}]")
}

#[tokio::test(flavor = "multi_thread")]
async fn lifecycle() {
    let Some(mut bed) = Bed::open().await else { return };
    for name in ["one", "two"] {
        // Pods need the account that a controller puts there.
        bed.kubectl(&["create", "namespace", name]);
        let wait = ["wait", "-n", name, "--for=create", "serviceaccount/default", "--timeout=30s"];
        bed.kubectl(&wait);
        bed.run(&format!("install {name} @ -n {name} --create-namespace --wait"));
        bed.compare("installed");
        bed.run(&format!("upgrade {name} @ -n {name} --set step=2"));
        bed.run(&format!("test {name} -n {name}"));
        bed.run(&format!("test {name} -n {name} --filter name={name}-check --logs"));
        bed.run(&format!("test {name} -n {name} --filter !name={name}-check --hide-notes"));
        bed.compare("upgraded and tested");
        if name == "two" {
            bed.swap();
        }
        bed.run(&format!("rollback {name} -n {name}"));
        bed.run(&format!("history {name} -n {name} --max 1"));
        bed.compare("rolled back");
        bed.run(&format!("rollback {name} 2 -n {name} --no-hooks --wait"));
        bed.run(&format!("uninstall {name} -n {name} --keep-history --description gone"));
        bed.compare("uninstalled, with history");
        bed.run(&format!("uninstall {name} -n {name} --keep-history"));
        bed.run(&format!("rollback {name} 1 -n {name}"));
        bed.compare("rolled back after that");
        bed.run(&format!("uninstall {name} -n {name} --wait"));
        bed.compare("uninstalled");
    }
    bed.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks() {
    let Some(mut bed) = Bed::open().await else { return };
    let job = r#""name":"job","events":"pre-install,pre-upgrade,pre-rollback,pre-delete""#;
    let failing = hook(&format!(r#"{job},"exit":3,"log":"hook-failed""#));
    bed.run(&format!("install bad @ {failing}"));
    bed.compare("a failed hook");
    bed.run(&format!("upgrade bad @ {}", hook(job)));
    bed.run(&format!("upgrade bad @ {failing}"));
    bed.run("upgrade bad @ --no-hooks --set step=2");
    bed.run("rollback bad 3");
    bed.run("rollback bad 2");
    // The one before died in its hook: what revision 4 alone names is left by Helm, and not by
    // ichor (docs/release-live.md).
    let has = |side: &Side| {
        let list = ["get", "configmaps", "-o", "name"];
        live::trial::kubectl(&side.plane, &list).contains("configmap/bad-only-2")
    };
    assert!(has(&bed.helm) && !has(&bed.ichor), "the known difference");
    live::trial::kubectl(&bed.helm.plane, &["delete", "configmap", "bad-only-2"]);
    bed.run("uninstall bad");
    bed.compare("upgrades with failed hooks");
    let gone = hook(&format!(r#"{job},"exit":1,"delete":"hook-failed""#));
    bed.run(&format!("install gone @ {gone}"));
    bed.run("uninstall gone");
    bed.run("uninstall gone --no-hooks");
    // Those that had succeeded go, by their policy, when a later one fails.
    let several = r#"--set-json hooks=[{"name":"c","events":"post-install","weight":3,"exit":1},{"name":"a","events":"post-install","weight":1,"delete":"hook-succeeded"},{"name":"b","events":"post-install","weight":1},{"name":"d","events":"post-install","weight":9}]"#;
    bed.run(&format!("install several @ {several}"));
    bed.compare("several hooks");
    let pod =
        r#""name":"pod","kind":"Pod","events":"post-install,post-upgrade,post-delete","exit":1"#;
    bed.run(&format!("install pod @ {}", hook(pod)));
    bed.run(&format!("upgrade pod @ {} --set step=2", hook(pod)));
    bed.run("uninstall pod");
    bed.compare("failed pods");
    let hang = hook(&format!(r#"{job},"health":"hang""#));
    bed.run(&format!("install hang @ {hang} --timeout 2s"));
    bed.run(&format!("upgrade hang @ {hang} --timeout 2s"));
    bed.compare("hooks that hang");
    // Not deleted before it is created again.
    let stays = hook(
        r#""name":"map","kind":"ConfigMap","events":"pre-install,pre-upgrade","delete":"hook-failed""#,
    );
    bed.run(&format!("install stays @ {stays}"));
    bed.run(&format!("upgrade stays @ {stays}"));
    let unknown = hook(r#""name":"x","kind":"Unknown","events":"pre-install,post-delete""#);
    bed.run(&format!("install unknown @ {unknown}"));
    bed.run("install unknown @ --replace --no-hooks");
    bed.run("uninstall unknown --no-hooks");
    bed.run(&format!("install dry @ {failing} --dry-run"));
    bed.run("install json @ -o json");
    bed.run("status json");
    bed.run("test json --timeout 1m");
    bed.run("test bad");
    bed.run("test nothing");
    bed.run("test WRONG");
    let check = r#""name":"check","kind":"Pod","events":"test","exit":4"#;
    bed.run(&format!("install check @ {}", hook(check)));
    bed.run("test check");
    bed.run("test check --logs");
    bed.run("get hooks check");
    bed.compare("after all");
    bed.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstall() {
    let Some(mut bed) = Bed::open().await else { return };
    let none = "--set-json hooks=[]";
    for command in [
        "uninstall nothing",
        "uninstall nothing --ignore-not-found",
        "uninstall nothing --dry-run",
        "uninstall WRONG",
        "uninstall WRONG --dry-run",
        "uninstall nothing --cascade never",
        "uninstall nothing --timeout x",
        &format!("install a @ {none}"),
        &format!("install b @ {none}"),
        &format!("install c @ {none} --set objects=false"),
        "uninstall a --dry-run",
        "uninstall a nothing b",
        "uninstall b c nothing",
        &format!("install d @ {none}"),
        "uninstall d --keep-history --cascade foreground --wait",
        &format!("upgrade d @ {none}"),
        &format!("upgrade -i d @ {none} --take-ownership"),
        "uninstall d --cascade=orphan",
        &format!("install e @ {none}"),
        &format!("upgrade e @ {none} --set step=2"),
        "uninstall e --no-hooks --description over --keep-history",
        "history e",
        "uninstall e",
    ] {
        bed.run(command);
    }
    bed.compare("after all");
    bed.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback() {
    let Some(mut bed) = Bed::open().await else { return };
    let none = "--set-json hooks=[]";
    for command in [
        "rollback nothing",
        "rollback WRONG",
        "rollback nothing x",
        "rollback nothing 99999999999999999999",
        &format!("install r @ {none}"),
        "rollback r",
        "rollback r 7",
        "rollback r 1 --dry-run",
        "rollback r 1 --wait --timeout 30s",
        &format!("upgrade r @ {none} --set step=2 -l team=a"),
        &format!("upgrade r @ {none} --set step=3 -l team=b"),
        "rollback r 3",
        "rollback r 4 --force",
        "rollback r --recreate-pods",
        "rollback r 2 --history-max 3",
        "history r",
        &format!("upgrade r @ {none} --set health=unready"),
        "rollback r 0 --wait --timeout 30s",
        "rollback r 9 --wait --wait-for-jobs --timeout 2s",
        "status r --show-desc",
        "get manifest r",
        "get values r",
        "get notes r",
        "get metadata r",
        "get all r",
        // The server refuses the Service.
        &format!("install s @ {none}"),
        &format!("upgrade s @ {none} --set port=70000"),
        "rollback s",
    ] {
        bed.run(command);
    }
    // It is created again, then the Service is refused.
    bed.kubectl(&["delete", "configmap", "s-kept"]);
    bed.run("rollback s 2 --cleanup-on-fail");
    bed.run("history s");
    bed.compare("after all");
    bed.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn undone() {
    let Some(mut bed) = Bed::open().await else { return };
    let none = "--set-json hooks=[]";
    let failing = hook(r#""name":"job","events":"post-install,post-upgrade","exit":3"#);
    for command in [
        &format!("install a @ {failing} --atomic"),
        &format!("install b @ {none} --atomic --set health=unready --timeout 2s"),
        &format!("install c @ {none} --atomic --set port=70000"),
        &format!("install d @ {none} --atomic --timeout 30s"),
        &format!("upgrade d @ {failing} --atomic --set step=2"),
        "history d",
        &format!("upgrade d @ {none} --atomic --set health=unready --timeout 3s"),
        &format!("upgrade d @ {none} --set port=70000 --set step=3 --cleanup-on-fail"),
        &format!("upgrade d @ {none} --set port=70000 --set step=4 --cleanup-on-fail --atomic"),
        &format!("install e @ {none} --set port=70000"),
        &format!("upgrade e @ {none} --set port=70001 --atomic"),
        &format!("upgrade -i f @ {failing} --atomic"),
        &format!("upgrade -i f @ {none} --force"),
        &format!("upgrade -i f @ {none} --force --set step=2"),
        &format!("upgrade f @ {none} --recreate-pods"),
        &format!("install g @ {none} --force --wait --wait-for-jobs"),
        "history f",
        &format!("install p @ {none} --post-renderer missing-program"),
        &format!("install p @ {none} --post-renderer false"),
        &format!("install p @ {none} --post-renderer sed --post-renderer-args s/step:/stop:/"),
        &format!("upgrade p @ {none} --post-renderer sed --post-renderer-args -n"),
        &format!("upgrade p @ {none} --post-renderer /bin/cat --set step=2"),
        &format!("upgrade p @ {none} --post-renderer tr --post-renderer-args x"),
        "get manifest p",
    ] {
        bed.run(command);
    }
    bed.compare("after all");
    bed.end();
}

/// Records that were copied from another release still say its name: a revision that is made from
/// them has the name that was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn copied_records() {
    let Some(mut bed) = Bed::open().await else { return };
    let none = "--set-json hooks=[]";
    bed.run(&format!("install old @ {none}"));
    bed.run(&format!("upgrade old @ {none} --set step=2"));
    for side in [&bed.helm, &bed.ichor] {
        for revision in ["v1", "v2"] {
            let key = |name: &str| format!("sh.helm.release.v1.{name}.{revision}");
            let secret =
                live::trial::kubectl(&side.plane, &["get", "secret", &key("old"), "-o", "json"]);
            let mut secret: serde_json::Value = serde_json::from_str(&secret).unwrap();
            let mut labels = secret["metadata"]["labels"].clone();
            labels["name"] = "new".into();
            secret["metadata"] = serde_json::json!({ "name": key("new"), "labels": labels });
            let file = side.plane.folder().join("copy.json");
            std::fs::write(&file, secret.to_string()).unwrap();
            live::trial::kubectl(&side.plane, &["create", "-f", &file.to_string_lossy()]);
        }
        // What a rollback deletes, and ichor would keep as another release's.
        let owner = "meta.helm.sh/release-name=new";
        let annotate = ["annotate", "configmap", "old-only-2", owner, "--overwrite"];
        live::trial::kubectl(&side.plane, &annotate);
    }
    for command in ["status new", "history new", "rollback new 1", "history new", "history old"] {
        bed.run(command);
    }
    bed.compare("after the rollback");
    bed.run(&format!("upgrade new @ {none} --set step=3"));
    bed.run("test new");
    bed.run("history new");
    bed.compare("after the upgrade");
    bed.run("uninstall new");
    bed.run("history new");
    bed.run("history old");
    bed.end();
}

/// What is no object under `crds/`, in a hook, and after a post-renderer.
#[tokio::test(flavor = "multi_thread")]
async fn no_objects() {
    let Some(mut bed) = Bed::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let texts = [
        "",
        "# x\n",
        "---\n",
        "null\n",
        "foo\n",
        "[]\n",
        "5\n",
        "{{ bad\n",
        "{\"a\":1\n",
        "{}\n",
        "a: [\n",
        "{bad}\n",
        "{\"kind\":\"X\",\"apiVersion\":1}\n",
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[]}\n",
    ];
    for (number, text) in texts.iter().enumerate() {
        let name = format!("c{number}");
        write(
            &format!("{name}/Chart.yaml"),
            &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
        );
        write(&format!("{name}/crds/c.yaml"), text);
        bed.run(&format!("install {name} {}", folder.path().join(&name).display()));
        let script = format!("printers/p{number}");
        write(&script, &format!("#!/bin/sh\ncat >/dev/null\ncat <<'END'\n{text}END\n"));
    }
    write("printers/killed", "#!/bin/sh\nkill -9 $$\n");
    write("printers/no-program", "echo\n");
    for file in std::fs::read_dir(folder.path().join("printers")).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = file.unwrap().path();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        bed.run(&format!("install {name} @ --no-hooks --post-renderer {}", path.display()));
    }
    for path in ["printers", "printers/absent"] {
        let path = folder.path().join(path);
        bed.run(&format!("install p @ --post-renderer {}", path.display()));
    }
    // It fails before it is deleted and made: the default policy is in the record all the same.
    let unknown = hook(r#""name":"x","kind":"Unknown","events":"pre-install""#);
    bed.run(&format!("install hooked @ {unknown}"));
    bed.compare("after all");
    bed.end();
}

/// An object that another release took: Helm deletes it, ichor does so when told.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_another_release() {
    let Some(mut bed) = Bed::open().await else { return };
    let take = r#"{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}"#;
    let none = "--set-json hooks=[]";
    let left = |bed: &Bed| {
        let list = ["get", "configmaps", "-o", "name"];
        live::trial::kubectl(&bed.ichor.plane, &list).contains("configmap/r-only-1")
    };
    bed.run(&format!("install r @ {none}"));
    bed.kubectl(&["patch", "configmap", "r-only-1", "-p", take]);
    bed.run(&format!("upgrade r @ {none} --set step=2"));
    assert!(left(&bed), "an upgrade deleted another release's object");
    bed.run(&format!("upgrade r @ {none}"));
    bed.kubectl(&["patch", "configmap", "r-only-1", "-p", take]);
    bed.run("rollback r 2");
    assert!(left(&bed), "a rollback deleted another release's object");
    bed.faults.clear();
    bed.run(&format!("upgrade r @ {none} --take-ownership"));
    bed.kubectl(&["patch", "configmap", "r-only-1", "-p", take]);
    let outcome = bed.ichor.run(&["uninstall", "r"]);
    let told = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(told.contains("was not deleted: it belongs to release \"other\""), "{told}");
    assert!(left(&bed), "it deleted another release's object");

    let outcome = bed.ichor.run(&["install", "r", &bed.chart, "--take-ownership", "--no-hooks"]);
    assert_eq!(outcome.code, Some(0));
    bed.kubectl(&["patch", "configmap", "r-only-1", "-p", take]);
    let outcome = bed.ichor.run(&["uninstall", "r", "--helm-compat", "--no-hooks"]);
    assert_eq!(outcome.code, Some(0));
    assert!(!left(&bed), "--helm-compat deletes what Helm deletes");
}
