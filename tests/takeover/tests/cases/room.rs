//! What does not fit is refused in the plan, by what would really be sent.

use serde_json::json;
use takeover_tests::records;

const RECORD: &str = "sh.helm.release.v1.cilium.v2";

/// A record whose annotation fits where it is, and not in a backup's index, which quotes it.
#[tokio::test(flavor = "multi_thread")]
async fn room_for_a_record_with_a_large_annotation() {
    let Some(bed) = records::three_revisions("secret").await else { return };
    let file = bed.plane.folder().join("note.json");
    let note = "\"".repeat(140_000);
    let patch = json!({ "metadata": { "annotations": { "example.org/note": note } } });
    std::fs::write(&file, patch.to_string()).unwrap();
    let file = format!("--patch-file={}", file.display());
    bed.kubectl(&["-n", "kube-system", "patch", "secret", RECORD, &file]);
    let plan = bed.refused(None, false).await;
    let [refusal] = plan.refusals.as_slice() else { panic!("{:?}", plan.refusals) };
    assert_eq!(refusal.reason, "Room");
    let todo = format!("kubectl -n kube-system annotate secret {RECORD} example.org/note-");
    for part in [RECORD, "bytes of annotations", "262144", &todo] {
        assert!(refusal.message.contains(part), "{part}: {}", refusal.message);
    }
    println!("{}", refusal.message);
    // What it says to do.
    bed.kubectl(&["-n", "kube-system", "annotate", "secret", RECORD, "example.org/note-"]);
    let plan = bed.plan(None).await.plan;
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    let sizes: Vec<&str> = plan.sizes.iter().map(|size| size.what.as_str()).collect();
    assert!(sizes.iter().any(|what| what.starts_with("the stored plan")), "{sizes:?}");
    println!("{:?}", plan.sizes);
    bed.take_over(None, &plan).await.unwrap();
    bed.plane.stop();
}

/// One that fits in the index all the same is backed up with it.
#[tokio::test(flavor = "multi_thread")]
async fn room_up_to_the_servers_limit() {
    let Some(bed) = records::three_revisions("secret").await else { return };
    let file = bed.plane.folder().join("note.json");
    let patch = json!({ "metadata": { "annotations": { "note": "n".repeat(250_000) } } });
    std::fs::write(&file, patch.to_string()).unwrap();
    let file = format!("--patch-file={}", file.display());
    bed.kubectl(&["-n", "kube-system", "patch", "secret", RECORD, &file]);
    let plan = bed.plan(None).await.plan;
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    let done = bed.take_over(None, &plan).await.unwrap();
    assert_eq!(done.records.deleted.len(), 3);
    bed.plane.stop();
}
