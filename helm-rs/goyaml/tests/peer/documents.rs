//! Texts that are YAML, nearly YAML, or made of its pieces.

use crate::random::Random;

/// Scalars that resolve to every type, or look as if they did.
pub(crate) const WORDS: &[&str] = &[
    "a",
    "b",
    "c",
    "name",
    "value",
    "1",
    "2",
    "-7",
    "0x1F",
    "017",
    "08",
    "0o17",
    "0b101",
    "1_000",
    "1.5",
    ".5",
    "1e3",
    "1e400",
    ".inf",
    "true",
    "no",
    "y",
    "Off",
    "null",
    "~",
    "2001-01-01",
    "2001-1-1 1:2:3",
    "12:30",
    "a b",
    "a-b",
    "x: y",
    "a#b",
    "a #b",
    "é",
    "日本",
    "http://x/y:80",
    "-a",
    "?a",
    ":a",
    "<<",
    "=",
    "*",
    "@",
    "18446744073709551615",
    "9007199254740993",
    "{{ x }}",
];

/// Indicators and other pieces that change what follows.
const PIECES: &[&str] = &[
    ": ",
    ":",
    "- ",
    "-",
    "\n",
    "\n",
    "\n  ",
    "\n    ",
    "\n- ",
    " ",
    "? ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "#",
    " # c",
    "&a ",
    "*a ",
    "&b ",
    "*b",
    "!!str ",
    "!!int ",
    "!!float ",
    "!!binary ",
    "!foo ",
    "! ",
    "!<x> ",
    "|",
    ">",
    "|-",
    ">+",
    "|2",
    "'",
    "''",
    "\"",
    "\\n",
    "\\x41",
    "\\\n",
    "---",
    "\n---\n",
    "\n...\n",
    "%YAML 1.1\n",
    "%TAG ! x:\n",
    "<<: *a\n",
    "\t",
    "\r\n",
    "\r",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{1f600}",
    "\u{7f}",
    "aGVsbG8=",
    "a:\n  b: c\n",
    "a: |\n  x\n",
];

/// Bytes that no YAML may hold.
const BAD_BYTES: &[&[u8]] = &[
    b"\x01",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbf\xbe",
    b"\xc0\x80",
    b"\xf5\x80\x80\x80",
    b"\xc2\x80",
];

/// Pieces in any order: mostly errors.
pub(crate) fn soup(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..=random.below(14) {
        let piece = if random.once_in(2) { random.pick(WORDS) } else { random.pick(PIECES) };
        text.extend_from_slice(piece.as_bytes());
    }
    text
}

/// Long texts with something special near the places where go-yaml loads the next 512 bytes.
pub(crate) fn chunks(random: &mut Random) -> Vec<u8> {
    const FILLERS: &[&str] = &["# comment\n", "kéy: välue 日\n", "- item\n", "a: b # c\n"];
    let mut text: Vec<u8> = Vec::new();
    if random.once_in(8) {
        text.extend_from_slice("\u{feff}".repeat(1 + random.below(2)).as_bytes());
    }
    for _ in 0..=random.below(3) {
        let filler = random.pick(FILLERS);
        let end = text.len() + 460 + random.below(60);
        while text.len() < end {
            text.extend_from_slice(filler.as_bytes());
        }
        text.truncate(text.len() - random.below(12));
        text.extend(soup(random));
        if random.once_in(3) {
            text.extend_from_slice(random.pick(BAD_BYTES));
        }
    }
    text
}

/// The text in UTF-16, now and then broken.
pub(crate) fn utf16(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let to_bytes = if random.once_in(2) { u16::to_le_bytes } else { u16::to_be_bytes };
    let mut out = to_bytes(0xfeff).to_vec();
    for mut unit in String::from_utf8_lossy(text).encode_utf16() {
        if random.once_in(300) {
            unit = 0xd800 + u16::try_from(random.below(0x800)).unwrap_or_default();
        }
        out.extend(to_bytes(unit));
    }
    if random.once_in(6) {
        out.truncate(out.len() - 1);
    }
    out
}

/// A text with a few bytes changed.
pub(crate) fn mutated(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() + 1);
        match random.below(4) {
            0 => drop(text.splice(at..at, random.pick(PIECES).bytes())),
            1 => drop(text.drain(at..(at + 1 + random.below(5)).min(text.len()).max(at))),
            2 => text.insert(at, random.pick(b" :-#'\"[]{},&*!|>%@`?\n\t=0a\\")),
            _ => text.truncate(at),
        }
    }
    text
}

/// Writes documents that are mostly valid: every collection style, anchors, tags, merges.
pub(crate) struct Writer<'r> {
    random: &'r mut Random,
    anchors: Vec<String>,
    out: String,
}

impl Writer<'_> {
    pub(crate) fn document(random: &mut Random) -> Vec<u8> {
        let mut writer = Writer { random, anchors: Vec::new(), out: String::new() };
        if writer.random.once_in(6) {
            writer.push_one_of(&["---\n", "--- # c\n", "%YAML 1.1\n---\n", "# c\n", "\n"]);
        }
        writer.block(0, 4);
        if writer.random.once_in(6) {
            writer.push_one_of(&["---\nb: c\n", "...\n", "# c\n", "\n"]);
        }
        writer.out.into_bytes()
    }

    fn push_one_of(&mut self, list: &[&str]) {
        let text = self.random.pick(list);
        self.out.push_str(text);
    }

    fn word(&mut self) {
        self.push_one_of(WORDS);
    }

    fn indent(&mut self, columns: usize) {
        self.out.extend(std::iter::repeat_n(' ', columns));
    }

    fn properties(&mut self) {
        if self.random.once_in(8) {
            let name = format!("x{}", self.random.below(5));
            self.out.extend(["&", &name, " "]);
            self.anchors.push(name);
        }
        if self.random.once_in(14) {
            self.push_one_of(&[
                "!!str ", "!!int ", "!!float ", "!!bool ", "!foo ", "! ", "!!null ",
            ]);
        }
    }

    fn anchor(&mut self) -> Option<String> {
        let at = self.random.below(self.anchors.len());
        self.anchors.get(at).cloned()
    }

    /// An alias now and then, if there is something to refer to.
    fn alias(&mut self) -> bool {
        if !self.random.once_in(6) {
            return false;
        }
        let Some(name) = self.anchor() else { return false };
        self.out.extend(["*", &name, " "]);
        true
    }

    fn scalar(&mut self, in_flow: bool, indent: usize) {
        match self.random.below(12) {
            0 => {
                self.out.push('\'');
                self.word();
                self.out.push('\'');
            }
            1 => {
                self.out.push('"');
                self.word();
                self.push_one_of(&["", "\\n", "\\t", "\\x41", "\\u00e9", " \\\n   ", "\n\n  "]);
                self.out.push_str("z\"");
            }
            2 if !in_flow => return self.block_scalar(indent),
            3 => {
                self.word();
                self.out.push('\n');
                self.indent(indent + 2);
                self.word();
            }
            4 => {}
            _ => self.word(),
        }
        if !in_flow {
            if self.random.once_in(10) {
                self.out.push_str(" # c");
            }
            self.out.push('\n');
        }
    }

    fn block_scalar(&mut self, indent: usize) {
        self.push_one_of(&["|", "|-", "|+", ">", ">-", ">+", "|2", ">1-"]);
        self.out.push('\n');
        for _ in 0..self.random.below(4) {
            let deeper = self.random.below(3);
            self.indent(indent + 1 + deeper);
            self.word();
            self.push_one_of(&["\n", "\n", "\n", "\n\n", " \n"]);
        }
    }

    fn flow(&mut self, depth: usize, indent: usize) {
        if self.alias() {
            return;
        }
        self.properties();
        match if depth == 0 { 2 } else { self.random.below(4) } {
            0 => {
                self.out.push('[');
                for _ in 0..self.random.below(4) {
                    self.flow(depth - 1, indent);
                    self.push_one_of(&[", ", ",", ",\n   ", ": "]);
                }
                self.out.push(']');
            }
            1 => {
                self.out.push('{');
                for _ in 0..self.random.below(4) {
                    match self.random.below(12) {
                        0 => self.out.push_str("<<"),
                        1 => {
                            self.out.push_str("? ");
                            self.flow(depth - 1, indent);
                        }
                        _ => self.word(),
                    }
                    if !self.random.once_in(12) {
                        self.out.push_str(": ");
                        self.flow(depth - 1, indent);
                    }
                    self.out.push_str(", ");
                }
                self.out.push('}');
            }
            _ => self.scalar(true, indent),
        }
    }

    fn value(&mut self, indent: usize, depth: usize, in_mapping: bool) {
        if self.alias() {
            self.out.push('\n');
            return;
        }
        self.properties();
        match if depth == 0 { 9 } else { self.random.below(10) } {
            0..=3 => {
                self.out.push('\n');
                if in_mapping && self.random.once_in(3) {
                    self.sequence(indent, depth - 1);
                } else {
                    let deeper = indent + 1 + self.random.below(3);
                    self.block(deeper, depth - 1);
                }
            }
            4 | 5 => {
                self.flow(2, indent);
                self.out.push('\n');
            }
            _ => self.scalar(false, indent),
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) {
        for _ in 0..=self.random.below(3) {
            self.indent(indent);
            if self.random.once_in(15) {
                self.out.push_str("-\n");
                continue;
            }
            self.out.push_str("- ");
            if depth > 0 && self.random.once_in(4) {
                // The first line of a collection stands behind the dash.
                let start = self.out.len();
                self.block(indent + 2, depth - 1);
                if self.out.len() > start + indent + 2 {
                    self.out.replace_range(start..start + indent + 2, "");
                }
            } else {
                self.value(indent, depth, false);
            }
        }
    }

    fn block(&mut self, indent: usize, depth: usize) {
        match self.random.below(5) {
            0 => {
                self.indent(indent);
                self.scalar(false, indent);
            }
            1 => self.sequence(indent, depth),
            _ => {
                for _ in 0..=self.random.below(4) {
                    self.indent(indent);
                    self.entry(indent, depth);
                }
            }
        }
    }

    fn entry(&mut self, indent: usize, depth: usize) {
        match self.random.below(14) {
            0 => {
                self.out.push_str("? ");
                self.value(indent, depth.saturating_sub(1), true);
                self.indent(indent);
                self.out.push_str(": ");
                return self.value(indent, depth.saturating_sub(1), true);
            }
            1 | 2 => {
                if let (Some(first), Some(second)) = (self.anchor(), self.anchor()) {
                    let one = self.random.once_in(3);
                    let value =
                        if one { format!("*{first}") } else { format!("[*{first}, *{second}]") };
                    self.out.extend(["<<: ", &value, "\n"]);
                    return;
                }
                self.word();
            }
            3 => {
                self.properties();
                self.word();
            }
            _ => self.word(),
        }
        self.out.push_str(": ");
        self.value(indent, depth, true);
    }
}
