//! Trees that are hard to write.

use goyaml::Value;

use crate::documents::WORDS;
use crate::random::Random;

/// Texts that need quotes, blocks, folding or escapes.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a ",
    " a",
    "a\n",
    "a\nb",
    "a\n\n",
    "\na",
    "\n",
    "a \nb",
    "a\n b",
    " a\nb",
    "a\tb",
    "a\tb\nc",
    "a\r\nb",
    "\u{85}",
    "a \u{85} b",
    "a\u{2028}b",
    "\u{a0}",
    "\u{feff}",
    "\u{feff}abc",
    "\u{1f600}",
    "\u{7f}",
    "\u{1}",
    "\u{9f}",
    "\u{fffe}",
    "<a>&b",
    "it's",
    "say \"x\"",
    "back\\slash",
    "#",
    "a: b",
    "a:",
    "- a",
    "---",
    "...",
    "[a",
    "{a",
    "%",
    "`",
    "|",
    ">",
    "1:60",
    "+1",
    "1.",
    "a long text with many words that goes on and on until it must be folded, is that not so, \
     because it is longer than eighty columns",
    "'quoted' long text with many   spaces   that goes on and on until it must be folded # by the \
     emitter because it is longer",
    "日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語 x",
];

const KEY_PARTS: &[&str] =
    &["a", "b", "B", "v", "1", "2", "10", "01", "001", "-", "_", ".", "/", "alpha", "é", "٣", "日"];

pub(crate) fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(3) / 2 {
        text.push_str(if random.once_in(2) { random.pick(TEXTS) } else { random.pick(WORDS) });
    }
    text
}

fn key(random: &mut Random) -> String {
    match random.below(8) {
        0 => text(random),
        1 => "k".repeat(random.below(300)),
        2 => random.pick(WORDS).to_owned(),
        _ => (0..=random.below(3)).map(|_| random.pick(KEY_PARTS)).collect(),
    }
}

fn float(random: &mut Random) -> f64 {
    const FLOATS: &[f64] = &[
        -0.0,
        1e6,
        1e20,
        1e21,
        1e-6,
        1e-7,
        123_456_789.5,
        9_007_199_254_740_993.0,
        1e19,
        5e-324,
        9_223_372_036_854_775_807.0,
        0.1,
        1e15,
        -1_473_591_305_284_148.2,
    ];
    let value = match random.below(4) {
        0 => random.pick(FLOATS),
        1 => f64::from(u32::try_from(random.below(100_000)).unwrap_or_default()) / 100.0,
        2 => f64::from_bits(random.number()),
        _ => return f64::from(u32::try_from(random.below(1000)).unwrap_or_default()),
    };
    if value.is_finite() { value } else { 1.5 }
}

pub(crate) fn tree(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 7 } else { 12 }) {
        0 => Value::Null,
        1 => Value::Bool(random.once_in(2)),
        2 => Value::Int(random.number().cast_signed() >> random.below(63)),
        3 => Value::Float(float(random)),
        4..=6 => Value::from(text(random)),
        7 | 8 => Value::Seq((0..random.below(5)).map(|_| tree(random, depth - 1)).collect()),
        _ => {
            let entries = (0..random.below(6)).map(|_| (key(random), tree(random, depth - 1)));
            Value::Map(entries.collect())
        }
    }
}
