//! Two records held against each other, with credentials hidden.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use helm_rs::release::Record;
use helm_rs::release::compare::{Comparison, Side, compare};

fn side(password: &str, data: &str, image: &str) -> Side {
    let json = serde_json::json!({
        "name": "web",
        "chart": {"metadata": {"name": "c", "version": "1.0.0"}, "values": {"port": 1}},
        "config": {"db": {"password": password}, "image": image},
        "manifest": format!(
            "kind: Secret\nmetadata: {{name: s}}\ndata: {{p: {data}, same: eA==}}\n---\nkind: Deployment\nmetadata: {{name: d}}\nspec: {{template: {{spec: {{containers: [{{name: a, image: {image}}}]}}}}}}\n"
        ),
        "info": {"notes": "n"},
        "version": 1,
    });
    let record = Record::from_json(&json.to_string()).unwrap();
    Side::of_record(&record).unwrap()
}

fn leaves(comparison: &Comparison) -> Vec<String> {
    let values = comparison.values.iter().flat_map(|values| &values.changes);
    let objects = comparison.manifest.iter().flat_map(|object| &object.changes);
    let text = |value: &Option<goyaml::Value>| {
        value.as_ref().map_or("-".to_owned(), |value| goyaml::json::to_json(value).unwrap())
    };
    values
        .chain(objects)
        .map(|change| format!("{} {} {}", change.path, text(&change.old), text(&change.new)))
        .collect()
}

#[test]
fn a_changed_credential_is_told_and_not_shown() {
    let (old, new) = (side("one", "b25l", "x:1"), side("two", "dHdv", "x:2"));
    let hidden = compare(&old, &new, false);
    assert_eq!(
        leaves(&hidden),
        [
            r#"db.password "REDACTED (before)" "REDACTED (after)""#,
            r#"image "x:1" "x:2""#,
            r#"data.p "REDACTED (before)" "REDACTED (after)""#,
            r#"spec.template.spec.containers[name=a].image "x:1" "x:2""#,
        ]
    );
    let everything = format!("{hidden:?}");
    for secret in ["\"one\"", "two", "b25l", "dHdv", "eA=="] {
        assert!(!everything.contains(secret), "{secret} in {everything}");
    }
    let shown = leaves(&compare(&old, &new, true));
    assert_eq!(shown.first().unwrap(), r#"db.password "one" "two""#);
}

#[test]
fn what_is_equal_has_no_difference() {
    let side = side("one", "b25l", "x:1");
    assert!(compare(&side, &side, false).is_empty());
    assert!(compare(&side, &side, true).is_empty());
}
