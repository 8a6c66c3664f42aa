//! `ichor adopt` and `ichor cni restore` at a terminal: they show, ask, and do what the answer says.

use std::io::Write as _;
use std::process::{Command, Stdio};

use takeover_tests::Bed;

/// Runs the program at a pseudo terminal (`script` of util-linux) and types the answer; its exit
/// code and what the terminal shows. None where there is no `script`.
fn typed(bed: &Bed, arguments: &[&str], answer: &str) -> Option<(i32, String)> {
    let charts = plane::cilium::chart("1.20.0").unwrap();
    let quoted: Vec<String> = std::iter::once(test_support::place::ichor().display().to_string())
        .chain(arguments.iter().map(|argument| (*argument).to_owned()))
        .map(|word| format!("'{word}'"))
        .collect();
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command", &quoted.join(" "), "/dev/null"])
        .env("KUBECONFIG", bed.plane.kubeconfig())
        .env("ICHOR_CHART_DIR", charts.parent()?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    // The terminal keeps what is typed until somebody reads it.
    child.stdin.as_mut()?.write_all(answer.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    Some((output.status.code().unwrap_or(-1), text))
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_asks_before_it_begins() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&["-n", "kube-system", "annotate", "service", "cilium-envoy", "team=net"]);
    let versions = bed.versions().await;
    let adopt = ["adopt", "--cilium-only"];
    let consent = ["adopt", "--cilium-only", "--accept-cilium-diff"];
    let Some((code, text)) = typed(&bed, &adopt, "y\n") else {
        let why = "it makes the terminal that the program asks at (util-linux)".to_owned();
        return test_support::Missing { what: "script".to_owned(), why }.excuse();
    };
    assert!(code == 2 && text.contains("consent is missing"), "consent flags stay needed: {text}");
    assert!(!text.contains("[y/N]"), "{text}");
    for answer in ["n\n", "\n", "\u{4}"] {
        let (code, text) = typed(&bed, &consent, answer).unwrap();
        assert!(code == 2 && text.contains("Carry this plan out? [y/N]"), "{code} {text}");
        assert!(text.contains("nothing was written"), "{text}");
        let (shown, asked) = (text.find("Digest").unwrap(), text.find("[y/N]").unwrap());
        assert!(shown < asked, "the plan comes first");
    }
    // Nobody looks at a plan between its last line and its first write.
    let (code, text) = typed(&bed, &[&consent[..], &["--yes"]].concat(), "").unwrap();
    assert!(code == 2 && text.contains("nobody saw this plan"), "{code} {text}");
    assert_eq!(bed.versions().await, versions);
    let (code, text) = typed(&bed, &consent, "y\n").unwrap();
    assert!(code == 0 && text.contains("Verified:"), "{code} {text}");
    let restore = ["cni", "restore"];
    let (code, text) = typed(&bed, &restore, "n\n").unwrap();
    assert!(code == 2 && text.contains("Put it back? [y/N]"), "{code} {text}");
    let (code, text) = typed(&bed, &restore, "yes\n").unwrap();
    assert!(code == 0 && text.contains("Restored: 1 record(s) are back"), "{code} {text}");
    assert!(bed.helm(&["list", "-A"]).contains("kube-system"));
    bed.plane.stop();
}
