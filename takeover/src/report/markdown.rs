//! Markdown as merge requests show it: tables, and `details` for what is long.
//!
//! Text of strangers stands in code: in fenced blocks, or in `code` elements where tables and
//! lists are, with every character that Markdown or HTML reads written as an entity. (A backslash
//! or a backtick is an escape in one place and none in another; an entity is one everywhere.)

use std::fmt::Write as _;

use super::change::Side;
use super::view::{Group, View};

/// The view as Markdown.
pub(super) fn text(view: &View) -> String {
    let mut out = String::new();
    head(&mut out, view);
    if view.gated {
        gated(&mut out, view);
    }
    list(&mut out, "What was not checked", view.unchecked.iter().map(|note| plain(note)));
    if view.gated {
        let _ = writeln!(out, "\n---\nDigest {}  ", code(&view.digest));
    } else {
        out.push_str("\n---\n");
    }
    let _ = writeln!(out, "Chart {}, plan form {}", code(&view.chart_digest), code(&view.schema));
    out
}

fn head(out: &mut String, view: &View) {
    let _ = writeln!(out, "# {}\n", plain(&view.headline));
    for line in &view.rehearsal {
        let _ = writeln!(out, "> {}  ", plain(line));
    }
    if !view.rehearsal.is_empty() {
        out.push('\n');
    }
    if view.gated {
        let _ = writeln!(out, "Plan {}\n", code(&view.digest));
        let names: Vec<String> = view.figures.iter().map(|f| plain(f.name)).collect();
        let counts: Vec<String> = view
            .figures
            .iter()
            .map(|f| if f.loud { format!("**{}**", f.count) } else { f.count.to_string() })
            .collect();
        let rule = vec!["--:"; names.len()].join(" | ");
        let _ = writeln!(out, "| {} |\n| {rule} |\n| {} |", names.join(" | "), counts.join(" | "));
    }
    if !view.refusals.is_empty() {
        out.push_str("\n## Why it is refused\n\n");
    }
    for refusal in &view.refusals {
        let message = plain(&refusal.message).replace('\n', "<br>");
        let _ = write!(out, "- **{}**: {message}", plain(&refusal.reason));
        if !refusal.instead.is_empty() {
            let _ = write!(out, "<br>Instead: {}.", plain(refusal.instead));
        }
        out.push('\n');
    }
    out.push_str("\n## What was found\n\n| | |\n|---|---|\n");
    for fact in &view.found {
        let _ = writeln!(out, "| {} | {} |", plain(fact.label), plain(&fact.text));
    }
    if !view.unexplained.is_empty() {
        let name = "What runs and the recovered values do not explain";
        fold(out, name, view.unexplained.iter().map(|place| code(place)));
    }
    if !view.overridden.is_empty() {
        out.push_str("\nDecided by ichor, whatever the values say:\n\n");
        out.push_str("| Key | The values say | Taken |\n|---|---|---|\n");
    }
    for owned in &view.overridden {
        let (key, from, to) = (code(&owned.key), code(&owned.from), code(&owned.to));
        let _ = writeln!(out, "| {key} | {from} | {to} |");
    }
}

fn gated(out: &mut String, view: &View) {
    list(out, "What happens", view.happens.iter().map(|line| plain(line)));
    consent(out, view);
    differences(out, view);
    list(
        out,
        view.creations_title,
        view.creations.iter().map(|creation| {
            let effect = if creation.effect.is_empty() {
                String::new()
            } else {
                format!(": {}", plain(&creation.effect))
            };
            format!("{}{effect}{}", code(&creation.name), note(&creation.note))
        }),
    );
    residue(out, view);
    out.push_str("\n## Restarts\n\n");
    if view.restarts.is_empty() {
        let _ = writeln!(out, "{}", view.none_sentences.restarts);
    }
    for restart in &view.restarts {
        let _ =
            writeln!(out, "- {}: **{}**, because of", code(&restart.name), plain(&restart.pods));
        for leaf in &restart.leaves {
            let _ = writeln!(out, "  - {}", code(leaf));
        }
    }
    out.push_str("\n## Records\n\n");
    if view.records.is_empty() {
        out.push_str("There are no foreign records.\n");
    } else {
        out.push_str(
            "Backed up to the namespace ichor-system, read back and compared, then deleted:\n\n",
        );
    }
    for record in &view.records {
        let _ = writeln!(out, "- {} ({})", code(&record.name), plain(&record.about));
    }
    if !view.sizes.is_empty() {
        out.push_str("\n| Written | Size | |\n|---|--:|--:|\n");
    }
    for size in &view.sizes {
        let _ = writeln!(out, "| {} | {} | {} |", plain(&size.what), size.bytes, size.share);
    }
    let rights = &view.rights;
    let _ = writeln!(
        out,
        "\n## Rights\n\n{} writes; {} right(s) checked, {}.\n",
        code(&rights.identity),
        rights.checked,
        if rights.granted {
            "and what is missing is granted before it begins".to_owned()
        } else {
            format!("{} missing", rights.missing.len())
        }
    );
    for missing in &rights.missing {
        let word = if rights.granted { "granted before it begins" } else { "missing" };
        let _ = writeln!(out, "- {word}: {}", code(missing));
    }
    if let Some(talos) = &view.talos {
        let _ = writeln!(out, "\n## Talos inventory\n\n{}\n", plain(&talos.summary));
        for todo in &talos.todo {
            let _ = writeln!(out, "- {}", plain(todo));
        }
        if !talos.listed.is_empty() {
            let name = format!("Listed objects that are taken over ({})", talos.listed_count);
            fold(out, &name, talos.listed.iter().map(|entry| code(entry)));
        }
    }
    list(out, "What stays", view.stays.iter().map(|line| plain(line)));
    for (title, groups) in [("of", &view.others), ("generated leaves kept in", &view.generated)] {
        for group in groups {
            folded_group(out, title, group);
        }
    }
    if !view.ownership.is_empty() {
        let name = format!("{} ownership leaves set", view.ownership_count);
        let entries = view.ownership.iter().flat_map(|group| {
            group.entries.iter().map(|entry| format!("{}: {}", code(&group.name), code(entry)))
        });
        fold(out, &name, entries);
    }
    if !view.hooks.is_empty() {
        let name = "Hooks of the chart, which a takeover does not run";
        fold(out, name, view.hooks.iter().map(|hook| code(hook)));
    }
}

fn folded_group(out: &mut String, title: &str, group: &Group) {
    let count = group.count;
    let name = if title == "of" {
        format!("{count} leaves of {}", plain(&group.name))
    } else {
        format!("{count} {title} {}", plain(&group.name))
    };
    fold(out, &name, group.entries.iter().map(|entry| code(entry)));
}

fn consent(out: &mut String, view: &View) {
    out.push_str("\n## Consent\n\n");
    if view.consent.is_empty() {
        let _ = writeln!(out, "{}", view.none_sentences.consent);
    } else {
        out.push_str("| Flag | Why |\n|---|---|\n");
    }
    for consent in &view.consent {
        let _ = writeln!(out, "| {} | {} |", code(&consent.flag), plain(&consent.why));
    }
    if !view.command.is_empty() {
        out.push_str("\nTo accept exactly this plan:\n");
        block(out, "sh", std::iter::once(view.command.as_str()));
    }
    if !view.changes.is_empty() {
        out.push_str("\nSettings of the running data plane that change:\n\n");
        out.push_str("| Key | Runs with | Will run with | |\n|---|---|---|---|\n");
    }
    for change in &view.changes {
        let asks = if change.needs_consent { "**needs consent**" } else { "" };
        let (key, from, to) = (code(&change.key), code(&change.from), code(&change.to));
        let _ = writeln!(out, "| {key} | {from} | {to} | {asks} |");
    }
}

fn differences(out: &mut String, view: &View) {
    out.push_str("\n## Differences\n\n");
    if view.objects.is_empty() {
        let _ = writeln!(out, "{}", view.none_sentences.differences);
    }
    for object in &view.objects {
        let restart = if object.restart.is_empty() {
            String::new()
        } else {
            format!(", **{}**", plain(&object.restart))
        };
        let _ = writeln!(out, "### {}{restart}{}\n", code(&object.name), note(&object.note));
        for leaf in &object.leaves {
            let restarts = if leaf.restarts { ", restarts pods" } else { "" };
            let _ = writeln!(out, "{} ({}{restarts})", code(&leaf.path), plain(&leaf.cause));
            let lines: Vec<String> = leaf
                .lines
                .iter()
                .map(|line| {
                    let sign = match line.side {
                        Side::Old => '-',
                        Side::New => '+',
                        Side::Both => ' ',
                    };
                    format!("{sign}{}", line.text)
                })
                .collect();
            block(out, "diff", lines.iter().map(String::as_str));
            out.push('\n');
        }
    }
    let _ = writeln!(out, "Of {} more object(s), nothing changes.", view.quiet);
}

fn residue(out: &mut String, view: &View) {
    if !view.deletions.is_empty() {
        out.push_str("\n## Deleted\n\nThe release had it, and the chart does not render it.\n\n");
    }
    for deleted in &view.deletions {
        let _ = writeln!(out, "- {}", code(deleted));
    }
    if view.residue.is_empty() && view.left_objects.is_empty() {
        return;
    }
    out.push_str("\n## Residue\n\nOnly the live objects have it, and it stays.\n");
    if !view.residue.is_empty() {
        out.push_str("\n| Object | Leaf | Value | Set by |\n|---|---|---|---|\n");
    }
    for object in &view.residue {
        for leaf in &object.leaves {
            let (name, path, value) = (code(&object.name), code(&leaf.path), code(&leaf.value));
            let _ = writeln!(out, "| {name} | {path} | {value} | {} |", plain(&leaf.manager));
        }
    }
    if !view.left_objects.is_empty() {
        out.push_str("\nObjects of the release before that the chart does not render:\n\n");
    }
    for left in &view.left_objects {
        let _ = writeln!(out, "- {}", code(left));
    }
}

fn note(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({})", plain(text)) }
}

fn list(out: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n## {title}\n");
    for item in items {
        let _ = writeln!(out, "- {item}");
    }
}

/// A folded list. Markdown inside HTML needs the empty lines.
fn fold(out: &mut String, name: &str, items: impl Iterator<Item = String>) {
    let _ = writeln!(out, "\n<details><summary>{name}</summary>\n");
    for item in items {
        let _ = writeln!(out, "- {item}");
    }
    out.push_str("\n</details>\n");
}

/// A fenced block whose fence no line can close.
fn block<'a>(out: &mut String, language: &str, lines: impl Iterator<Item = &'a str>) {
    let lines: Vec<&str> = lines.collect();
    let mut longest = 0;
    for line in &lines {
        let mut run = 0;
        for c in line.chars() {
            run = if c == '`' { run + 1 } else { 0 };
            longest = longest.max(run);
        }
    }
    let fence = "`".repeat((longest + 1).max(3));
    let _ = writeln!(out, "\n{fence}{language}");
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "{fence}");
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<code>{}</code>", plain(text)) }
}

/// Text with every character that Markdown or HTML may read as an entity.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '|' | '`' | '*' | '_' | '\\' | '[' | ']' | '~' | '#' | '!' | '$' | '@' | '{' | '}' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    // A bare address would become a link.
    out.replace("://", "&#58;//")
}
