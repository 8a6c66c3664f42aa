//! Expression cases: files of many small templates with what Helm makes of them.
//!
//! ```text
//! # Lines before the first case are comments, or the values that cases without their own use.
//! values: {a: 1}
//!
//! === first/case            a name, unique in the file
//! values: {a: "x"}          one line, or a block (below)
//! flags: strict             any of strict, lint, upgrade, dns
//! template: {{ .Values.a | upper }}
//! expect: X                 what Helm printed, or
//! error: …                  its error text
//!
//! === second/case
//! --- template
//! {{ range .Values.list }}
//! - {{ . }}
//! {{ end }}
//! --- partial _helpers.tpl  a further template of the chart
//! {{ define "x" }}…{{ end }}
//! --- file config.txt       a file of the chart, for .Files
//! text
//! --- expect
//! …
//! ```
//!
//! A block goes on to the next line that opens a section or a case, and its last newline is not
//! part of it. A text that a line cannot show (control characters, blanks at line ends, bytes that
//! are not UTF-8) is written on one line with Rust's escapes, under the key with `-escaped`
//! appended. Expectations are written by `hack/bless expressions`, never by hand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What a template gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The rendered text.
    Output(Vec<u8>),
    /// The error's text.
    Error(String),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Output(bytes) => write!(f, "output {}", escape(bytes)),
            Self::Error(text) => write!(f, "error  {}", escape(text.as_bytes())),
        }
    }
}

/// A named text: a partial template or a file of the chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The name below `templates/`, or in the chart for files.
    pub name: String,
    /// Its bytes.
    pub text: Vec<u8>,
}

/// One case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Case {
    /// Unique in its file.
    pub name: String,
    /// The template's text.
    pub template: Vec<u8>,
    /// The values as YAML; the file's common values when the case has none.
    pub values: Vec<u8>,
    /// Whether the values are the case's own.
    own_values: bool,
    /// Rendered with `missingkey=error`.
    pub strict: bool,
    /// Rendered as lint does.
    pub lint: bool,
    /// `.Release.IsUpgrade`.
    pub upgrade: bool,
    /// Name resolution allowed.
    pub dns: bool,
    /// Further templates of the chart.
    pub partials: Vec<Named>,
    /// Files of the chart.
    pub files: Vec<Named>,
    /// What Helm gave; `None` until blessed.
    pub expectation: Option<Outcome>,
}

impl Case {
    /// A case that is only a template and its values.
    pub fn new(name: &str, template: impl Into<Vec<u8>>, values: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.to_owned(),
            template: template.into(),
            values: values.into(),
            own_values: true,
            ..Self::default()
        }
    }
}

/// A file of cases.
#[derive(Debug, Clone)]
pub struct CaseFile {
    /// Where it is.
    pub path: PathBuf,
    /// The lines before the first case, as they are.
    head: String,
    /// Its cases, in order.
    pub cases: Vec<Case>,
}

/// What is wrong with a case file, and where.
#[derive(Debug)]
pub struct CaseError {
    path: PathBuf,
    line: usize,
    problem: String,
}

impl std::fmt::Display for CaseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.problem)
    }
}

impl std::error::Error for CaseError {}

const SECTIONS: [&str; 6] = ["values", "template", "expect", "error", "partial", "file"];

impl CaseFile {
    /// Reads every `*.txt` of a folder, in name order.
    ///
    /// # Errors
    /// The first file that cannot be read, with the place.
    pub fn folder(folder: &Path) -> Result<Vec<Self>, CaseError> {
        let failed = |path: &Path, error: &std::io::Error| CaseError {
            path: path.to_path_buf(),
            line: 0,
            problem: error.to_string(),
        };
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .map_err(|error| failed(folder, &error))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
            .collect();
        paths.sort();
        paths
            .iter()
            .map(|path| {
                let text = std::fs::read_to_string(path).map_err(|error| failed(path, &error))?;
                Self::parse(path, &text)
            })
            .collect()
    }

    /// Reads one file's text.
    ///
    /// # Errors
    /// The first line that makes no sense.
    pub fn parse(path: &Path, text: &str) -> Result<Self, CaseError> {
        let mut file = Self { path: path.to_path_buf(), head: String::new(), cases: Vec::new() };
        let mut common = Vec::new();
        let lines: Vec<&str> = text.split('\n').collect();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let number = at + 1;
            let wrong = |problem: &str| CaseError {
                path: path.to_path_buf(),
                line: number,
                problem: problem.to_owned(),
            };
            at += 1;
            if let Some(name) = line.strip_prefix("=== ") {
                if file.cases.iter().any(|case| case.name == name) {
                    return Err(wrong("a second case of this name"));
                }
                file.cases.push(Case {
                    name: name.to_owned(),
                    values: common.clone(),
                    ..Case::default()
                });
                continue;
            }
            let Some(case) = file.cases.last_mut() else {
                if let Some(values) = line.strip_prefix("values: ") {
                    common = values.as_bytes().to_vec();
                }
                file.head.push_str(line);
                file.head.push('\n');
                continue;
            };
            if line.is_empty() {
                continue;
            }
            if let Some((section, argument)) = section(line) {
                let start = at;
                while lines.get(at).is_some_and(|line| !opens(line)) {
                    at += 1;
                }
                // The blank line that sets cases apart, or the file's end, is not the block's.
                let mut end = at;
                let last = lines.get(at).is_none_or(|line| line.starts_with("=== "));
                if last && end > start && lines[end - 1].is_empty() {
                    end -= 1;
                }
                let body = lines[start..end].join("\n").into_bytes();
                case.set(section, argument, body).map_err(|problem| wrong(&problem))?;
            } else if let Some((key, value)) = line.split_once(':') {
                let value = value.strip_prefix(' ').unwrap_or(value);
                let (key, value) = match key.strip_suffix("-escaped") {
                    Some(key) => (key, unescape(value).ok_or_else(|| wrong("a bad escape"))?),
                    None => (key, value.as_bytes().to_vec()),
                };
                case.set(key, "", value).map_err(|problem| wrong(&problem))?;
            } else {
                return Err(wrong("neither a key nor a section"));
            }
        }
        Ok(file)
    }

    /// The file's text, expectations included.
    pub fn text(&self) -> String {
        let mut out = self.head.clone();
        for (index, case) in self.cases.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            case.write(&mut out);
        }
        out
    }
}

impl Case {
    fn set(&mut self, key: &str, argument: &str, value: Vec<u8>) -> Result<(), String> {
        match key {
            "template" => self.template = value,
            "values" => {
                self.values = value;
                self.own_values = true;
            }
            "expect" => self.expectation = Some(Outcome::Output(value)),
            "error" => {
                let text = String::from_utf8_lossy(&value).into_owned();
                self.expectation = Some(Outcome::Error(text));
            }
            "partial" => self.partials.push(Named { name: argument.to_owned(), text: value }),
            "file" => self.files.push(Named { name: argument.to_owned(), text: value }),
            "flags" => {
                for flag in String::from_utf8_lossy(&value).split_whitespace() {
                    match flag {
                        "strict" => self.strict = true,
                        "lint" => self.lint = true,
                        "upgrade" => self.upgrade = true,
                        "dns" => self.dns = true,
                        _ => return Err(format!("unknown flag {flag}")),
                    }
                }
            }
            _ => return Err(format!("unknown key {key}")),
        }
        Ok(())
    }

    fn write(&self, out: &mut String) {
        let _ = writeln!(out, "=== {}", self.name);
        if self.own_values {
            put(out, "values", "", &self.values);
        }
        let flags: Vec<&str> = [
            (self.strict, "strict"),
            (self.lint, "lint"),
            (self.upgrade, "upgrade"),
            (self.dns, "dns"),
        ]
        .into_iter()
        .filter_map(|(set, name)| set.then_some(name))
        .collect();
        if !flags.is_empty() {
            let _ = writeln!(out, "flags: {}", flags.join(" "));
        }
        put(out, "template", "", &self.template);
        for partial in &self.partials {
            put(out, "partial", &partial.name, &partial.text);
        }
        for file in &self.files {
            put(out, "file", &file.name, &file.text);
        }
        match &self.expectation {
            Some(Outcome::Output(text)) => put(out, "expect", "", text),
            Some(Outcome::Error(text)) => put(out, "error", "", text.as_bytes()),
            None => {}
        }
    }
}

/// Writes one text in the plainest form that reads back the same.
fn put(out: &mut String, key: &str, argument: &str, bytes: &[u8]) {
    let plain = std::str::from_utf8(bytes).ok().filter(|text| {
        text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control())
            && !text.contains('\u{feff}')
            && text.split('\n').all(|line| !line.ends_with([' ', '\t', '\u{a0}']))
            // A line of its own needs no care for what opens a section.
            && (argument.is_empty() && !text.contains('\n') || !text.split('\n').any(opens))
    });
    let _ = match plain {
        Some("") if argument.is_empty() => writeln!(out, "{key}:"),
        Some(text) if argument.is_empty() && !text.contains('\n') => {
            writeln!(out, "{key}: {text}")
        }
        // A block cannot end in a newline at the end of its case, where blank lines are cut.
        Some(text) if !argument.is_empty() || !text.ends_with('\n') => {
            let gap = if argument.is_empty() { "" } else { " " };
            writeln!(out, "--- {key}{gap}{argument}\n{text}")
        }
        _ => writeln!(out, "{key}-escaped: {}", escape(bytes)),
    };
}

fn section(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("--- ")?;
    let (name, argument) = rest.split_once(' ').unwrap_or((rest, ""));
    SECTIONS.contains(&name).then_some((name, argument))
}

fn opens(line: &str) -> bool {
    line.starts_with("=== ") || section(line).is_some() || {
        // A one-line key after a block.
        let key = line.split(':').next().unwrap_or_default();
        let key = key.strip_suffix("-escaped").unwrap_or(key);
        line.len() > key.len() && ["flags", "expect", "error", "template"].contains(&key)
    }
}

/// Bytes on one line: backslash escapes for what cannot be seen.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if c.is_control() || matches!(c, '\u{feff}' | '\u{a0}') => {
                    out.extend(c.escape_unicode());
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    if out.ends_with(' ') {
        out.pop();
        out.push_str("\\u{20}");
    }
    out
}

/// The inverse of [`escape`]; `None` for a bad escape.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.extend(character.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match characters.next()? {
            '\\' => out.push(b'\\'),
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'x' => {
                let digits: String = characters.by_ref().take(2).collect();
                out.push(u8::from_str_radix(&digits, 16).ok()?);
            }
            'u' => {
                let digits: String =
                    characters.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let c = char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?;
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            }
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{CaseFile, Outcome, escape, unescape};
    use std::path::Path;

    #[test]
    fn escapes_read_back() {
        for bytes in [&b"a\\b\n\t\r\x00\xff end "[..], "\u{feff}ü😀".as_bytes(), b""] {
            assert_eq!(unescape(&escape(bytes)).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn a_file_is_written_as_it_was_read() {
        let text = "# comment\nvalues: {a: 1}\n\n=== one\ntemplate: {{ .Values.a }}\nexpect: 1\n\n\
                    === two\nvalues: {b: 2}\nflags: strict\n--- template\n\n  x\n{{ fail `no` }}\n\
                    --- partial _p.tpl\n{{ define \"p\" }}\n{{ end }}\n--- file c.txt\nl\nm\n\
                    error: no\n\n=== three\ntemplate-escaped: a\\n\nexpect-escaped: a\\n\n\
                    \n=== four\ntemplate: {{/**/}}\nexpect:\n";
        let file = CaseFile::parse(Path::new("x.txt"), text).unwrap();
        assert_eq!(file.cases.len(), 4);
        assert_eq!(file.cases[1].template, b"\n  x\n{{ fail `no` }}");
        assert_eq!(file.cases[1].files[0].text, b"l\nm");
        assert_eq!(file.cases[0].values, b"{a: 1}");
        assert_eq!(file.cases[3].expectation, Some(Outcome::Output(Vec::new())));
        assert_eq!(file.text(), text);
    }
}
