//! A plan for a terminal: what was found, what will happen, what needs consent and why,
//! differences by object with the few that matter first, restarts, records, rights.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::Plan;
use crate::report::change::{Line, Room, Side};
use crate::report::view::{Group, LeafView, ObjectView, View, count};

/// Leaves of one object that are shown before the rest is counted.
const SHOWN: usize = 8;
/// Lines of one leaf that are shown.
const LINES: usize = 16;
/// Narrower than this, lines are not broken but left to the terminal.
const NARROWEST: usize = 40;

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look<'a> {
    /// Show every leaf, whoever owns it.
    pub all: bool,
    /// With ANSI colours.
    pub colour: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// The command that made the plan, word by word and without consents, where a plan does not know
    /// it whole: what is to be typed to accept it begins so. Empty: as far as the plan knows it.
    pub typed: &'a [String],
}

impl Default for Look<'_> {
    /// What matters, without colour, 100 columns.
    fn default() -> Self {
        Self { all: false, colour: false, width: 100, typed: &[] }
    }
}

/// The plan as plain text. `all` shows every leaf.
pub fn to_text(plan: &Plan, all: bool) -> String {
    to_terminal(plan, Look { all, ..Look::default() })
}

/// The plan as text for a terminal.
pub fn to_terminal(plan: &Plan, look: Look<'_>) -> String {
    let width = look.width.max(NARROWEST);
    let lines = if look.all { usize::MAX } else { LINES };
    let mut view = View::new(plan, Room { width: width.saturating_sub(12).max(NARROWEST), lines });
    view.typed(plan, look.typed);
    let mut page = Page { out: String::new(), look: Look { width, ..look } };
    page.rehearsal(&view);
    page.found(&view);
    page.refusals(&view);
    if view.gated {
        page.happens(&view);
        page.consent(&view);
        page.differences(&view);
        page.restarts(&view);
        page.records(&view);
        page.rights(&view);
        page.talos(&view);
    }
    page.list("Not checked", &view.unchecked);
    if view.gated {
        let digest = page.paint(Style::Bold, &view.digest);
        let _ = writeln!(page.out, "\nDigest  {digest}");
    }
    page.out
}

/// What a text is, and so how it looks.
#[derive(Clone, Copy)]
enum Style {
    Heading,
    Bold,
    Bad,
    Ask,
    Good,
    Old,
    New,
    Dim,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Heading => "\x1b[1;4m",
            Self::Bold => "\x1b[1m",
            Self::Bad => "\x1b[1;31m",
            Self::Ask => "\x1b[33m",
            Self::Good | Self::New => "\x1b[32m",
            Self::Old => "\x1b[31m",
            Self::Dim => "\x1b[2m",
        }
    }
}

struct Page<'a> {
    out: String,
    look: Look<'a>,
}

/// How it looks that a list is empty: well, unless the plan is refused.
const fn good(view: &View) -> Option<Style> {
    if view.refusals.is_empty() { Some(Style::Good) } else { None }
}

impl Page<'_> {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.look.colour && !text.is_empty() {
            format!("{}{text}\x1b[0m", style.code())
        } else {
            text.to_owned()
        }
    }

    fn heading(&mut self, text: &str) {
        let gap = if self.out.is_empty() { "" } else { "\n" };
        let text = self.paint(Style::Heading, text);
        let _ = writeln!(self.out, "{gap}{text}");
    }

    /// A paragraph: `first` before its first line, as many blanks before the others.
    fn paragraph(&mut self, first: &str, text: &str, style: Option<Style>) {
        let indent = first.width();
        let room = self.look.width.saturating_sub(indent).max(NARROWEST / 2);
        for (number, line) in wrap(text, room).iter().enumerate() {
            let line = style.map_or_else(|| line.clone(), |style| self.paint(style, line));
            let before = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
            let _ = writeln!(self.out, "{before}{line}");
        }
    }

    fn list(&mut self, title: &str, items: &[String]) {
        if !items.is_empty() {
            self.heading(title);
        }
        for item in items {
            self.paragraph("  ", item, None);
        }
    }

    fn rehearsal(&mut self, view: &View) {
        let Some((headline, notes)) = view.rehearsal.split_first() else { return };
        self.paragraph("", headline, Some(Style::Ask));
        for note in notes {
            self.paragraph("  ", note, None);
        }
    }

    fn found(&mut self, view: &View) {
        self.heading("Found");
        let label = view.found.iter().map(|fact| fact.label.len()).max().unwrap_or_default();
        for fact in &view.found {
            self.paragraph(&format!("  {:label$}  ", fact.label), &fact.text, None);
        }
        if self.look.all {
            for place in &view.unexplained {
                self.paragraph(&format!("  {:label$}  unexplained: ", ""), place, None);
            }
        }
        for owned in &view.overridden {
            let text =
                format!("{} is {}, whatever the values say ({})", owned.key, owned.to, owned.from);
            self.paragraph(&format!("  {:label$}  ", ""), &text, None);
        }
    }

    fn refusals(&mut self, view: &View) {
        if view.refusals.is_empty() {
            return;
        }
        self.heading("Refused, nothing is written");
        for refusal in &view.refusals {
            let reason = self.paint(Style::Bad, &refusal.reason);
            let _ = writeln!(self.out, "  {reason}");
            self.paragraph("    ", &refusal.message, None);
            if !refusal.instead.is_empty() {
                self.paragraph("    instead: ", refusal.instead, None);
            }
        }
    }

    fn happens(&mut self, view: &View) {
        self.heading("What happens");
        for line in &view.happens {
            self.paragraph("  ", line, None);
        }
    }

    fn consent(&mut self, view: &View) {
        self.heading("Consent");
        if view.consent.is_empty() {
            self.paragraph("  ", &view.none.consent, good(view));
        }
        for consent in &view.consent {
            let flag = self.paint(Style::Ask, &consent.flag);
            let _ = writeln!(self.out, "  {flag}");
            self.paragraph("    ", &consent.why, None);
        }
        for change in &view.changes {
            let asks = if change.needs_consent { "" } else { " (needs no consent)" };
            let text = format!("{}: {} becomes {}{asks}", change.key, change.from, change.to);
            self.paragraph("    ", &text, None);
        }
        if !view.command.is_empty() {
            let _ = writeln!(self.out, "  to accept exactly this plan:");
            // Never broken, so that it can be copied.
            let command = self.paint(Style::Bold, &view.command);
            let _ = writeln!(self.out, "    {command}");
        }
    }

    fn differences(&mut self, view: &View) {
        let loud = !(view.objects.is_empty()
            && view.creations.is_empty()
            && view.residue.is_empty()
            && view.left_objects.is_empty()
            && view.deletions.is_empty());
        self.heading("Differences");
        for object in &view.objects {
            self.object(object);
        }
        let verb = if view.mood == "nothing" { "is missing" } else { "is created" };
        for creation in &view.creations {
            let effect = if creation.effect.is_empty() {
                String::new()
            } else {
                format!(": {}", creation.effect)
            };
            let note = bracket(&creation.note);
            self.paragraph(
                "  + ",
                &format!("{} {verb}{effect}{note}", creation.name),
                Some(Style::New),
            );
        }
        for object in &view.residue {
            let _ = writeln!(self.out, "  {}", object.name);
            let limit = self.limit(object.leaves.len());
            for leaf in object.leaves.iter().take(limit) {
                let by = if leaf.manager.is_empty() {
                    String::new()
                } else {
                    format!(" (set by {})", leaf.manager)
                };
                let _ = writeln!(self.out, "    = {} stays: {}{by}", leaf.path, leaf.value);
            }
            self.folded("    ", object.leaves.len() - limit, "live-only leaves stay");
        }
        for deleted in &view.deletions {
            let text = format!("{deleted} is deleted: the chart does not render it any more");
            self.paragraph("  - ", &text, Some(Style::Old));
        }
        for left in &view.left_objects {
            self.paragraph("  = ", &format!("{left} stays: the chart does not render it"), None);
        }
        if !loud {
            self.paragraph("  ", &view.none.differences, good(view));
        }
        self.noise(view);
    }

    /// How many of so many are shown: all, or so few that folding is worth its line.
    const fn limit(&self, count: usize) -> usize {
        if self.look.all || count <= SHOWN + 1 { count } else { SHOWN }
    }

    fn folded(&mut self, indent: &str, count: usize, what: &str) {
        if count > 0 {
            let text = format!("… {count} more {what} (--show-all)");
            self.paragraph(indent, &text, Some(Style::Dim));
        }
    }

    fn object(&mut self, object: &ObjectView) {
        let restart = if object.restart.is_empty() {
            String::new()
        } else {
            format!("  {}", self.paint(Style::Ask, &object.restart))
        };
        let name = self.paint(Style::Bold, &object.name);
        let _ = writeln!(self.out, "  {name}{restart}");
        if !object.note.is_empty() {
            self.paragraph("    ", &bracket(&object.note), Some(Style::Dim));
        }
        let limit = self.limit(object.leaves.len());
        for leaf in object.leaves.iter().take(limit) {
            self.leaf(leaf);
        }
        self.folded("    ", object.leaves.len() - limit, "leaves of this object change");
    }

    fn leaf(&mut self, leaf: &LeafView) {
        let restarts = if leaf.restarts { ", restarts pods" } else { "" };
        let cause = self.paint(Style::Dim, &format!("[{}{restarts}]", leaf.cause));
        let _ = writeln!(self.out, "    ~ {} {cause}", leaf.path);
        if let [old, new] = &*leaf.lines
            && (old.side, new.side) == (Side::Old, Side::New)
            && old.text.width() + new.text.width() + 11 <= self.look.width
        {
            let (place, new) = shared_place(&old.text, &new.text);
            let old = old.text.get(place.len()..).unwrap_or_default();
            let (old, new) = (self.paint(Style::Old, old), self.paint(Style::New, new));
            let _ = writeln!(self.out, "        {place}{old} → {new}");
            return;
        }
        for Line { side, text } in &leaf.lines {
            let line = match side {
                Side::Old => self.paint(Style::Old, &format!("- {text}")),
                Side::New => self.paint(Style::New, &format!("+ {text}")),
                Side::Both => self.paint(Style::Dim, &format!("  {text}")),
            };
            let _ = writeln!(self.out, "        {line}");
        }
    }

    /// What needs no look: counted, or listed when everything is.
    fn noise(&mut self, view: &View) {
        let mut parts =
            vec![count(view.quiet, "object without differences", "objects without differences")];
        let sum = |groups: &[Group]| groups.iter().map(|group| group.count).sum::<usize>();
        let others = sum(&view.others);
        if others > 0 {
            let by: Vec<String> =
                view.others.iter().map(|group| format!("{} {}", group.name, group.count)).collect();
            parts.push(format!(
                "{} of controllers and the server ({})",
                count(others, "leaf", "leaves"),
                by.join(", ")
            ));
        }
        let generated = sum(&view.generated);
        if generated > 0 {
            parts.push(format!("{} kept", count(generated, "generated leaf", "generated leaves")));
        }
        let ownership = sum(&view.ownership);
        if ownership > 0 {
            parts.push(count(ownership, "ownership leaf set", "ownership leaves set"));
        }
        if view.defaults > 0 {
            parts.push(count(view.defaults, "server default", "server defaults"));
        }
        if !view.hooks.is_empty() {
            parts.push(count(view.hooks.len(), "hook not run", "hooks not run"));
        }
        let more = if self.look.all { "" } else { " (--show-all lists them)" };
        self.out.push('\n');
        self.paragraph("  ", &format!("besides: {}{more}", parts.join("; ")), Some(Style::Dim));
        if !self.look.all {
            return;
        }
        for (groups, what) in [
            (&view.others, "leaves are its:"),
            (&view.generated, "generated leaves, the live values are kept:"),
            (&view.ownership, "ownership leaves:"),
        ] {
            for group in groups {
                let _ = writeln!(self.out, "    {}, {} {what}", group.name, group.count);
                for entry in &group.entries {
                    let _ = writeln!(self.out, "      {entry}");
                }
            }
        }
        for hook in &view.hooks {
            let _ = writeln!(self.out, "    {hook} is a hook, which a takeover does not run");
        }
    }

    fn restarts(&mut self, view: &View) {
        self.heading("Restarts");
        if view.restarts.is_empty() {
            self.paragraph("  ", &view.none.restarts, good(view));
        }
        for restart in &view.restarts {
            let name = self.paint(Style::Ask, &restart.name);
            let first = restart.leaves.first().map_or("", String::as_str);
            let more = match restart.leaves.len() {
                0 | 1 => String::new(),
                len => format!(" and {} more", len - 1),
            };
            let _ = writeln!(self.out, "  {name}: {}", restart.pods);
            self.paragraph("    because of ", &format!("{first}{more}"), None);
        }
    }

    fn records(&mut self, view: &View) {
        self.heading("Records");
        if view.records.is_empty() {
            self.paragraph("  ", "no foreign records", None);
        }
        let limit = self.limit(view.records.len());
        for record in view.records.iter().take(limit) {
            let text = format!("{} ({}): backed up, then deleted", record.name, record.about);
            self.paragraph("  ", &text, None);
        }
        self.folded("  ", view.records.len() - limit, "foreign records, treated alike");
        for size in &view.sizes {
            self.paragraph("  ", &format!("{}: {}, {}", size.what, size.bytes, size.share), None);
        }
    }

    fn rights(&mut self, view: &View) {
        self.heading("Rights");
        let rights = &view.rights;
        // Where nothing is to be written, nobody was asked.
        let who = if rights.identity.is_empty() { "none asked" } else { &rights.identity };
        let text = if rights.granted {
            format!(
                "{who}: {} checked; what is missing is granted before it begins",
                rights.checked
            )
        } else {
            format!("{who}: {} checked, {} missing", rights.checked, rights.missing.len())
        };
        self.paragraph("  ", &text, None);
        for missing in &rights.missing {
            if rights.granted {
                self.paragraph("  granted: ", missing, None);
            } else {
                self.paragraph("  missing: ", missing, Some(Style::Bad));
            }
        }
    }

    fn talos(&mut self, view: &View) {
        let Some(talos) = &view.talos else { return };
        self.heading("Talos inventory");
        self.paragraph("  ", &talos.summary, None);
        for todo in &talos.todo {
            self.paragraph("  to do: ", todo, None);
        }
        if self.look.all {
            for listed in &talos.listed {
                let _ = writeln!(self.out, "    {listed}");
            }
        }
    }
}

/// The place that both sides begin with (`admin.mode: `), and what the new side has after it.
fn shared_place<'a>(old: &str, new: &'a str) -> (&'a str, &'a str) {
    let end = new.find(": ").map_or(0, |at| at + 2);
    let place = new.get(..end).unwrap_or_default();
    if place.starts_with(['"', '{', '[']) || !old.starts_with(place) {
        return ("", new);
    }
    (place, new.get(end..).unwrap_or_default())
}

fn bracket(note: &str) -> String {
    if note.is_empty() { String::new() } else { format!(" [{note}]") }
}

/// A text in lines of at most `width` columns, broken at blanks; a longer word has its own line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut columns = 0;
        for word in paragraph.split(' ') {
            let more = word.width();
            if columns > 0 && columns + 1 + more > width {
                lines.push(std::mem::take(&mut line));
                columns = 0;
            }
            if !line.is_empty() {
                line.push(' ');
                columns += 1;
            }
            line.push_str(word);
            columns += more;
        }
        lines.push(line);
    }
    lines
}
