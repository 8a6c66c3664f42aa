//! Random objects of every built-in kind, stored by Go and read here: the JSON is Go's.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use etcd_tests::differences;
use serde_json::Value;
use test_support::skip;

#[test]
fn every_kind_reads_as_go_reads_it() {
    let peer = match test_support::peer::program("etcd-peer") {
        Ok(peer) => peer,
        Err(missing) => skip!(missing),
    };
    let count = std::env::var("ICHOR_ETCD_OBJECTS").unwrap_or_else(|_| "12".to_owned());
    let output = Command::new(peer).args(["objects", &count, "1"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut faults = Vec::new();
    let (mut kinds, mut objects) = (std::collections::BTreeSet::new(), 0);
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).unwrap();
        let title = format!("{} {}", line["apiVersion"], line["kind"]);
        let stored = STANDARD.decode(line["stored"].as_str().unwrap()).unwrap();
        objects += 1;
        let read = match etcd_snapshot::storage::object(&stored, 1) {
            Ok(read) => read,
            Err(error) => {
                faults.push(format!("{title}: {error}: {:?}", std::error::Error::source(&error)));
                continue;
            }
        };
        if !read.is_whole {
            faults.push(format!("{title}: is not in the table"));
        }
        let text = goyaml::json::to_json(&goyaml::Value::Map(read.object)).unwrap();
        let got: Value = serde_json::from_str(&text).unwrap();
        let mut found = Vec::new();
        differences(&line["object"], &got, "", &mut found);
        faults.extend(found.into_iter().map(|it| format!("{title}{it}")));
        kinds.insert(title);
    }
    println!("{objects} objects of {} kinds", kinds.len());
    let told = faults.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} differences:\n{told}", faults.len());
    assert!(kinds.len() > 100, "{}", kinds.len());
}
