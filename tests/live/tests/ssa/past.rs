//! Releases with a client-side past: what the chart drops is gone, whoever wrote before.

use plane::Plane;
use serde_json::Value;

use crate::bed::{Pair, Peer, objects, plane};

/// What the second step of the chart `web` no longer has, by object: a scalar and an annotation, a
/// whole map, an entry of a list, and one of the environment.
const DROPPED: [(&str, &str); 5] = [
    ("ConfigMap", r#""gone""#),
    ("ConfigMap", "example.org/first"),
    ("Service", r#""admin""#),
    ("Deployment", r#""OLD""#),
    ("Deployment", r#""plane.ichor.maesh.dev/health""#),
];

/// The release's objects, with the owners of their fields.
fn state(plane: &Plane) -> Vec<(String, Value)> {
    let all = objects(plane).into_iter();
    all.filter(|(title, _)| title.ends_with(" default/web")).collect()
}

/// What of the dropped leaves is left in the object itself.
fn stuck(plane: &Plane) -> Vec<String> {
    let state = state(plane);
    assert!(state.len() > 4, "the release is there");
    let has = |kind: &str, text: &str| {
        state.iter().any(|(title, object)| {
            title.starts_with(&format!("{kind} ")) && object.to_string().contains(text)
        })
    };
    DROPPED
        .iter()
        .filter(|(kind, text)| has(kind, text))
        .map(|(kind, text)| format!("{kind}: {text}"))
        .collect()
}

/// Helm 3 installs; Helm 4 on one plane and ichor on the other one change to server-side apply with
/// a chart that drops leaves.
#[tokio::test(flavor = "multi_thread")]
async fn ssa_after_helm3() {
    let Some(mut pair) = Pair::open().await else { return };
    for plane in [&pair.helm4, &pair.ichor] {
        Peer::Helm3.succeed(plane, "install web @web --set step=1 --set health=ready");
        assert_eq!(stuck(plane).len(), DROPPED.len(), "the first step has them all");
    }
    let upgrade = "upgrade web @web --set step=2 --apply-method ssa";
    // The plan says what will be, and writes nothing.
    let before = state(&pair.ichor);
    let plan = Peer::Ichor.run(&pair.ichor, &format!("plan {upgrade}"));
    let told = crate::bed::told(&plan);
    assert_eq!(plan.code, Some(0), "{told}");
    for line in [
        "data.gone: \"1\" -> (none)",
        "env[name=OLD]: {\"name\":\"OLD\",\"value\":\"1\"} -> (none)",
    ] {
        assert!(told.contains(line), "{line} is not in\n{told}");
    }
    assert_eq!(before, state(&pair.ichor), "a plan wrote");

    pair.run(upgrade);
    pair.compare("upgraded by server-side apply");
    for plane in [&pair.helm4, &pair.ichor] {
        assert_eq!(stuck(plane), Vec::<String>::new());
    }
    // All is applied: a plan of the same changes nothing, and is asked of the server alone.
    let plan = Peer::Ichor.run(&pair.ichor, "plan upgrade web @web --set step=2");
    let told = crate::bed::told(&plan);
    assert!(told.contains("0 to create, 0 to change, 0 to delete, 6 unchanged"), "{told}");
    pair.end();
}

/// Three programs, one release: each goes on with what the other made, in either way.
#[tokio::test(flavor = "multi_thread")]
async fn ssa_in_turns() {
    use Peer::{Helm3, Helm4, Ichor};
    let Some(plane) = plane().await else { return };
    let steps = [
        (Ichor, "install", 1, "--apply-method ssa"),
        (Helm4, "upgrade", 2, ""),
        (Ichor, "upgrade", 1, ""),
        (Helm3, "upgrade", 2, ""),
        (Ichor, "upgrade", 1, ""),
        (Helm3, "upgrade", 1, ""),
        (Ichor, "upgrade", 2, "--apply-method ssa"),
        (Helm4, "upgrade", 1, ""),
        (Helm4, "upgrade", 2, "--apply-method csa"),
        (Helm3, "upgrade", 1, ""),
        (Helm4, "upgrade", 2, "--apply-method ssa"),
        (Ichor, "upgrade", 1, "--apply-method csa"),
        (Ichor, "upgrade", 2, "--apply-method ssa"),
    ];
    for (place, (peer, action, step, flags)) in steps.into_iter().enumerate() {
        let health = if step == 1 { "--set health=ready" } else { "" };
        let command = format!("{action} web @web --set step={step} {health} {flags}");
        peer.succeed(&plane, &command);
        let stuck = stuck(&plane);
        let wanted = if step == 1 { DROPPED.len() } else { 0 };
        assert_eq!(stuck.len(), wanted, "{place}: {peer:?} {command}: {stuck:?}");
    }
}
