//! The embedded table is the one that the Go types give.

use std::process::Command;

#[test]
fn table_is_current() {
    let program = match test_support::peer::program("patch-peer") {
        Ok(program) => program,
        Err(missing) => return missing.excuse(),
    };
    let output = Command::new(program).arg("table").output().expect("the peer runs");
    assert!(output.status.success());
    let theirs = String::from_utf8(output.stdout).expect("the table is text");
    let ours = include_str!("../src/schema/table.txt");
    let different = theirs.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
    assert_eq!(different, None, "write the table anew: patch-peer table > src/schema/table.txt");
    assert_eq!(theirs.len(), ours.len());
}
