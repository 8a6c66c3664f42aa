//! Random values whose top-level names tell their kind: `s` text, `i` integer, `f` float, `b`
//! truth, `l` list, `w` list of texts, `m` map, `z` null, `x` anything.

use crate::random::Random;

/// How many names there are of each kind.
pub(super) const EACH: usize = 3;

/// Texts as YAML flow scalars: quoted, plain, and such as resolve to other kinds.
const TEXTS: [&str; 30] = [
    "\"\"",
    "plain",
    "\"two words\"",
    "'it''s'",
    "\"a: b\"",
    "ünïcödé",
    "\"☃ 😀\"",
    "\"line\\nbreak\"",
    "\"tab\\there\"",
    "\"  spaced  \"",
    "\"true\"",
    "\"null\"",
    "\"0123\"",
    "\"1.5\"",
    "\"1e3\"",
    "a-b_c.d",
    "\"{{ .Values.i0 }}\"",
    "\"<a href='x'>&\"",
    "UPPER",
    "CamelCaseText",
    "\"- x\"",
    "\"#no\"",
    "x,y",
    "\"y\"",
    "'\"'",
    "\"1.2.3-rc.1\"",
    "http://h.example/p?q=1",
    "/a/b/c.tar.gz",
    "\"a,b,,c\"",
    "\"long long long long long long long long long long long long long long long long text\"",
];
const INTEGERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "42",
    "7",
    "1234567",
    "-300",
    "0x1f",
    "017",
    "1_000",
    "65535",
    "9007199254740993",
];
const FLOATS: [&str; 9] =
    ["0.5", "2.5", "-1.25", "1e3", "1e21", "1.0", "3.14159265", "1e-7", "0.1"];
const BOOLS: [&str; 6] = ["true", "false", "yes", "No", "on", "False"];
const KEYS: [&str; 8] = ["a", "b", "c", "key", "name", "Upper", "with-dash", "ü"];

fn scalar(random: &mut Random) -> String {
    match random.below(9) {
        0..=3 => random.pick(&TEXTS).to_owned(),
        4 | 5 => random.pick(&INTEGERS).to_owned(),
        6 => random.pick(&FLOATS).to_owned(),
        7 => random.pick(&BOOLS).to_owned(),
        _ => "null".to_owned(),
    }
}

fn quoted_when_flow(scalar: String) -> String {
    // Plain text with a comma would end inside a flow collection.
    if scalar.starts_with(['"', '\'']) || !scalar.contains([',', ':', '{', '?']) {
        scalar
    } else {
        format!("\"{scalar}\"")
    }
}

fn value(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0..=4 => quoted_when_flow(scalar(random)),
        5 | 6 => list(random, depth - 1),
        _ => map(random, depth - 1),
    }
}

fn list(random: &mut Random, depth: usize) -> String {
    let items: Vec<String> = (0..random.below(5)).map(|_| value(random, depth)).collect();
    format!("[{}]", items.join(", "))
}

fn words(random: &mut Random) -> String {
    let items: Vec<String> = (0..random.below(5))
        .map(|_| {
            let text = random.pick(&TEXTS).to_owned();
            if text.starts_with(['"', '\'']) { text } else { format!("\"{text}\"") }
        })
        .collect();
    format!("[{}]", items.join(", "))
}

fn map(random: &mut Random, depth: usize) -> String {
    let mut entries = Vec::new();
    for key in KEYS {
        if random.chance(1, 3) {
            entries.push(format!("{key}: {}", value(random, depth)));
        }
    }
    format!("{{{}}}", entries.join(", "))
}

/// The lines of a values file.
pub(super) fn lines(random: &mut Random) -> Vec<String> {
    let mut lines = Vec::new();
    for number in 0..EACH {
        lines.push(format!("s{number}: {}", random.pick(&TEXTS)));
        lines.push(format!("i{number}: {}", random.pick(&INTEGERS)));
        lines.push(format!("f{number}: {}", random.pick(&FLOATS)));
        lines.push(format!("b{number}: {}", random.pick(&BOOLS)));
        lines.push(format!("l{number}: {}", list(random, 2)));
        lines.push(format!("w{number}: {}", words(random)));
        lines.push(format!("m{number}: {}", map(random, 2)));
        lines.push(format!("x{number}: {}", value(random, 2)));
    }
    lines.push("z0: null".to_owned());
    lines
}
