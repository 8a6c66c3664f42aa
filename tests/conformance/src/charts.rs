//! Chart cases: the project's own charts below `tests/charts`, each with its command lines.
//!
//! A folder `tests/charts/NAME` holds the chart in `chart/`, whatever its command lines name
//! (`values/…`), and two files:
//!
//! `cases.txt`, one command line a line, `#` for comments:
//!
//! ```text
//! NAME: ARGUMENTS          template rel chart ARGUMENTS
//! NAME! ARGUMENTS          template ARGUMENTS, all of them given
//! ```
//!
//! Words are split at blanks; single quotes keep blanks, `\n` inside them is a newline.
//!
//! `prepare.txt`, optional, what git cannot or should not hold, done in the copy that is run:
//!
//! ```text
//! pack FOLDER INTO         packs the chart FOLDER into the folder INTO (a .tgz, by real Helm)
//! link TARGET NAME         a symbolic link NAME to TARGET
//! crlf FILE                gives the file Windows line endings
//! bytes FILE ESCAPED       writes a file from text with Rust's escapes
//! repository FOLDER NAME   copies a folder of the repository
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use test_support::sealed::{Outcome, Sealed};
use test_support::{difference, mask, peer, place};

use crate::cases::unescape;

/// One command line of one chart.
#[derive(Debug, Clone)]
pub struct ChartCase {
    /// The folder's name below `tests/charts`.
    pub chart: String,
    /// Unique in its chart.
    pub name: String,
    /// What follows `template`.
    pub arguments: Vec<String>,
}

/// All cases, in order.
///
/// # Errors
/// A case file that cannot be read or makes no sense.
pub fn all() -> io::Result<Vec<ChartCase>> {
    let folder = place::repository().join("tests/charts");
    let mut charts: Vec<PathBuf> =
        fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    charts.sort();
    let mut cases = Vec::new();
    for path in charts {
        let file = path.join("cases.txt");
        if !file.is_file() {
            continue;
        }
        let chart = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for line in fs::read_to_string(&file)?.lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || io::Error::other(format!("{}: {line}", file.display()));
            let end = line.find([':', '!']).ok_or_else(wrong)?;
            let (name, rest) = line.split_at(end);
            let mut arguments = Vec::new();
            if rest.starts_with(':') {
                arguments.extend(["rel".to_owned(), "chart".to_owned()]);
            }
            arguments.extend(words(&rest[1..]).ok_or_else(wrong)?);
            cases.push(ChartCase { chart: chart.clone(), name: name.to_owned(), arguments });
        }
    }
    Ok(cases)
}

/// Splits a command line; `None` for an open quote.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!quoted).then(|| words.iter().map(|word| word.replace("\\n", "\n")).collect())
}

/// A copy of a chart's folder, prepared. Both sides run in it, one after the other, since errors
/// name its path.
#[derive(Debug)]
pub struct Prepared {
    _folder: TempDir,
    work: PathBuf,
}

/// Copies and prepares a chart's folder.
///
/// # Errors
/// A preparation that fails, with its line.
pub fn prepare(chart: &str) -> io::Result<Prepared> {
    let source = place::repository().join("tests/charts").join(chart);
    let folder = TempDir::new()?;
    let work = folder.path().join("work");
    copy(&source, &work)?;
    if let Ok(text) = fs::read_to_string(source.join("prepare.txt")) {
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            step(&work, line)
                .map_err(|error| io::Error::other(format!("{chart}: {line}: {error}")))?;
        }
    }
    Ok(Prepared { _folder: folder, work })
}

fn step(folder: &Path, line: &str) -> io::Result<()> {
    let parts: Vec<&str> = line.splitn(3, ' ').collect();
    match parts.as_slice() {
        ["pack", from, into] => {
            let helm = peer::helm().map_err(io::Error::other)?;
            let into = folder.join(into);
            fs::create_dir_all(&into)?;
            let out = Sealed::new(&helm).in_folder(folder).run([
                "package".as_ref(),
                from.as_ref(),
                "--destination".as_ref(),
                into.as_os_str(),
            ]);
            if out.code == Some(0) {
                Ok(())
            } else {
                Err(io::Error::other(String::from_utf8_lossy(&out.stderr).into_owned()))
            }
        }
        ["repository", from, name] => copy(&place::repository().join(from), &folder.join(name)),
        ["link", target, name] => std::os::unix::fs::symlink(target, folder.join(name)),
        ["crlf", file] => {
            let text = fs::read_to_string(folder.join(file))?;
            fs::write(folder.join(file), text.replace('\n', "\r\n"))
        }
        ["bytes", file, text] => {
            let bytes = unescape(text).ok_or_else(|| io::Error::other("a bad escape"))?;
            fs::write(folder.join(file), bytes)
        }
        _ => Err(io::Error::other("not a preparation")),
    }
}

/// Copies a folder, links as links.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// What one side did: the run, and the files it wrote below `out`.
#[derive(Debug)]
struct Run {
    outcome: Outcome,
    files: BTreeMap<String, Vec<u8>>,
}

fn run(program: &Path, prefix: &[&str], folder: &Path, arguments: &[String]) -> io::Result<Run> {
    let out = folder.join("out");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let all = prefix.iter().map(OsString::from).chain(arguments.iter().map(OsString::from));
    let outcome = Sealed::new(program).in_folder(folder).run(all);
    let mut files = BTreeMap::new();
    if out.exists() {
        collect(&out, "", &mut files)?;
    }
    Ok(Run { outcome, files })
}

fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{below}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &name, files)?;
        } else {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Runs both sides; `Ok(None)` when they agree, else what differs.
///
/// # Errors
/// When a side cannot be run or its files cannot be read.
pub fn compare(prepared: &Prepared, case: &ChartCase) -> io::Result<Option<String>> {
    let helm = peer::helm().map_err(io::Error::other)?;
    let theirs = run(&helm, &["template"], &prepared.work, &case.arguments)?;
    // Until ours renders, Helm against itself shows that the case and the masks are sound.
    let ours = if crate::ours::unavailable().is_some() {
        run(&helm, &["template"], &prepared.work, &case.arguments)?
    } else {
        run(place::ichor(), &["chart", "template"], &prepared.work, &case.arguments)?
    };
    let debug = case.arguments.iter().any(|argument| argument == "--debug");
    Ok(differences(&theirs, &ours, debug))
}

fn differences(theirs: &Run, ours: &Run, debug: bool) -> Option<String> {
    let mut found = Vec::new();
    let (left, right) = (&theirs.outcome, &ours.outcome);
    // Endless recursion through `tpl` overflows Go's stack and kills Helm. Ours says so.
    if String::from_utf8_lossy(&left.stderr).contains("goroutine stack exceeds") {
        let said = right.code == Some(1) && right.error_text().is_some();
        return (!said && crate::ours::unavailable().is_none())
            .then(|| "Helm crashes; ours gives no error either".to_owned());
    }
    // Helm prints a failed render's files as they come out of a map.
    let unordered = debug && left.code != Some(0);
    let masked = |bytes: &[u8]| {
        let text = mask::certificates(&String::from_utf8_lossy(bytes));
        if unordered { in_order(&text) } else { text }.into_bytes()
    };
    if left.code != right.code {
        found.push(format!("exit status: Helm {:?}, ours {:?}", left.code, right.code));
    }
    if right.timed_out {
        found.push("ours ran into the time limit".to_owned());
    }
    if left.stdout != right.stdout {
        found.extend(
            difference::first(&masked(&left.stdout), &masked(&right.stdout))
                .map(|difference| format!("standard output:\n{difference}")),
        );
    }
    let (said, our_said) = (messages(&left.stderr, debug), messages(&right.stderr, debug));
    if said != our_said {
        found.extend(
            difference::first(said.as_bytes(), our_said.as_bytes())
                .map(|difference| format!("standard error:\n{difference}")),
        );
    }
    let names = |run: &Run| run.files.keys().cloned().collect::<Vec<_>>();
    if names(theirs) != names(ours) {
        found.push(format!("files written: Helm {:?}, ours {:?}", names(theirs), names(ours)));
    }
    for (name, text) in &theirs.files {
        if let Some(difference) = ours
            .files
            .get(name)
            .and_then(|our_text| difference::first(&masked(text), &masked(our_text)))
        {
            found.push(format!("file {name}:\n{difference}"));
        }
    }
    (!found.is_empty()).then(|| found.join("\n"))
}

/// The files of a rendered text in the order of their names.
fn in_order(text: &str) -> String {
    const START: &str = "---\n# Source: ";
    let mut files: Vec<&str> = text.split(START).map(str::trim_end).collect();
    files.sort_unstable();
    files.join(&format!("\n{START}"))
}

/// Standard error in a form that can be compared: log lines without the place in Go's source that
/// they start with and in sorted order, since Helm walks maps while it warns; schema violations in
/// sorted order for the same reason; the program's own name as Helm's; without blank lines and our
/// hints, which are lines of their own; with `--debug` only the error's line.
fn messages(stderr: &[u8], debug: bool) -> String {
    let text = String::from_utf8_lossy(stderr).replace("ichor chart template", "helm template");
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("hint: ")) {
        lines.push(match line.split_once(".go:") {
            Some((file, rest)) if file.chars().all(|c| c.is_ascii_lowercase() || c == '_') => {
                rest.split_once(": ").map_or(rest, |(_, message)| message)
            }
            _ => line,
        });
    }
    let error = lines.iter().position(|line| line.starts_with("Error: ")).unwrap_or(lines.len());
    lines[..error].sort_unstable();
    if debug {
        // Each side says what it likes around the error: Go's stack, an excerpt of the template.
        return lines.get(error).copied().unwrap_or_default().to_owned();
    }
    for group in lines[error..].split_mut(|line| !line.trim_start_matches("  ").starts_with("- ")) {
        group.sort_unstable();
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{messages, words};

    #[test]
    fn command_lines_split_like_a_shell() {
        assert_eq!(
            words(" --set 'a b=c\\nd' '' x'y z'").unwrap(),
            ["--set", "a b=c\nd", "", "xy z"]
        );
        assert_eq!(words("'open"), None);
    }

    #[test]
    fn log_places_and_the_order_of_maps_do_not_count() {
        let text = b"coalesce.go:298: warning: x\nq: 1\nError: bad:\n- b: y\n- a: x\n\n\
                     end\nhint: h\n";
        let expected = "q: 1\nwarning: x\nError: bad:\n- a: x\n- b: y\nend";
        assert_eq!(messages(text, false), expected);
        assert_eq!(messages(b"\nx [debug] t\nError: e\nmain.main\n", true), "Error: e");
    }
}
