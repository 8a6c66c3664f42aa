//! The image's recipe: pinned bases, no shell, no root, the chart built in.

use std::collections::BTreeMap;

struct Stage {
    base: String,
    steps: Vec<(String, String)>,
}

fn stages(text: &str) -> Vec<Stage> {
    let joined = text.replace("\\\n", " ");
    let mut stages: Vec<Stage> = Vec::new();
    for line in joined.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap();
        if word == "FROM" {
            stages.push(Stage { base: rest.to_owned(), steps: Vec::new() });
        } else {
            let step = (word.to_owned(), rest.trim().to_owned());
            stages.last_mut().unwrap().steps.push(step);
        }
    }
    stages
}

#[test]
fn the_dockerfile() {
    let root = test_support::place::repository();
    let text = std::fs::read_to_string(root.join("Dockerfile")).unwrap();
    let stages = stages(&text);
    assert_eq!(stages.len(), 2, "a stage that builds and one that runs");
    let [build, run] = stages.as_slice() else { unreachable!() };
    let (name, tag) = build.base.split(' ').next().unwrap().split_once(':').unwrap();
    assert_eq!(name, "rust", "an official base");
    let version = tag.split('-').next().unwrap();
    assert!(version.split('.').count() == 3 && tag.contains("-alpine3."), "pinned: {tag}");
    let toolchain = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let wanted = toolchain.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    assert!(version.starts_with(wanted.trim_matches('"')), "{version} is not {wanted}");
    assert_eq!(run.base, "scratch", "nothing but the program: no shell, no package");
    let builds = build.steps.iter().any(|(word, text)| {
        word == "RUN"
            && text.contains("cargo build --locked --release")
            && text.contains("chart pull cilium")
    });
    assert!(builds, "the program and the pinned chart, whose digest it checks");
    let run: BTreeMap<&str, &str> =
        run.steps.iter().map(|(word, text)| (word.as_str(), text.as_str())).collect();
    let user: Vec<&str> = run["USER"].split(':').collect();
    assert!(user.iter().all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user:?}");
    assert_eq!(run["ENTRYPOINT"], "[\"/ichor\"]");
    assert_eq!(run["ENV"], "ICHOR_CHART_DIR=/charts");
    assert!(run["COPY"].starts_with("--from="), "only what was built");
    for word in ["ADD", "EXPOSE", "VOLUME", "SHELL", "CMD"] {
        assert!(!run.contains_key(word), "{word}");
    }
    let ignored = std::fs::read_to_string(root.join(".dockerignore")).unwrap();
    for path in ["target", ".git"] {
        assert!(ignored.lines().any(|line| line == path), "{path} is sent to the builder");
    }
}
