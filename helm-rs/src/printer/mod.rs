//! Objects for people, as `kubectl get` prints them: the tables that a server makes
//! (`k8s.io/cli-runtime/pkg/printers/tableprinter.go`), or name and age where it makes none.

mod columns;

use gotemplate::fmt::sprint;
use goyaml::Limits;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::render::from_tree;

/// Prints objects one after the other. Heads are repeated only where they change.
#[derive(Debug)]
pub struct TablePrinter {
    now: Timestamp,
    /// The columns of the table before.
    last: Vec<Column>,
    /// Whether they were printed.
    is_headed: bool,
    /// Whether the head of objects without a table was printed.
    is_plain_headed: bool,
}

/// A table of `meta.k8s.io`, as far as it is printed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    #[serde(default)]
    column_definitions: Option<Vec<Column>>,
    #[serde(default)]
    rows: Option<Vec<Row>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Column {
    name: String,
    r#type: String,
    format: String,
    description: String,
    priority: i32,
}

#[derive(Debug, Deserialize)]
struct Row {
    #[serde(default)]
    cells: Option<Vec<Value>>,
}

impl TablePrinter {
    /// A printer that counts ages up to `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { now, last: Vec::new(), is_headed: false, is_plain_headed: false }
    }

    /// Appends a table, an object or a list of objects to `out`.
    pub fn print(&mut self, object: &Value, out: &mut String) {
        let mut text = String::new();
        match table(object) {
            Some(table) => self.table(table, &mut text),
            None => self.plain(object, &mut text),
        }
        out.push_str(&columns::align(&text));
    }

    fn table(&mut self, table: Table, out: &mut String) {
        let (columns, rows) =
            (table.column_definitions.unwrap_or_default(), table.rows.unwrap_or_default());
        let is_same = columns.is_empty() || columns == self.last;
        let has_head = !(self.is_headed && is_same);
        if !is_same {
            self.last = columns;
            self.is_headed = false;
        }
        if rows.is_empty() {
            return;
        }
        self.is_headed = true;
        let shown = |column: &Column| column.priority == 0;
        if has_head {
            let names = self.last.iter().filter(|column| shown(column));
            // A terminal would act on what is escaped in cells as well.
            let names = names.map(|column| cell(&Value::from(column.name.to_uppercase())));
            line(names, out);
        }
        for row in rows {
            let cells = row.cells.unwrap_or_default();
            let cells = cells.iter().zip(&self.last).filter(|(_, column)| shown(column));
            line(cells.map(|(value, _)| cell(value)), out);
        }
    }

    /// Objects of which the server made no table.
    fn plain(&mut self, object: &Value, out: &mut String) {
        if !self.is_plain_headed {
            self.is_plain_headed = true;
            out.push_str("NAME\tAGE\n");
        }
        match object.get("items").and_then(Value::as_array) {
            Some(items) => items.iter().for_each(|item| self.plain_row(item, out)),
            None => self.plain_row(object, out),
        }
    }

    fn plain_row(&self, object: &Value, out: &mut String) {
        let text = |field| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let created = text("/metadata/creationTimestamp").parse::<Timestamp>().ok();
        let age = created.map_or_else(
            || "<unknown>".to_owned(),
            |created| human_duration(self.now.duration_since(created).as_secs()),
        );
        line([cell(&Value::from(text("/metadata/name"))), age].into_iter(), out);
    }
}

/// The object as a table, if it is one.
fn table(object: &Value) -> Option<Table> {
    let is = |field, wanted: &[&str]| {
        object.get(field).and_then(Value::as_str).is_some_and(|text| wanted.contains(&text))
    };
    if !is("kind", &["Table"]) || !is("apiVersion", &["meta.k8s.io/v1", "meta.k8s.io/v1beta1"]) {
        return None;
    }
    Table::deserialize(object).ok()
}

fn line(cells: impl Iterator<Item = String>, out: &mut String) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            out.push('\t');
        }
        out.push_str(&cell);
    }
    out.push('\n');
}

/// A cell: its first line, without what a terminal would act on.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => match text.split_once(['\x0c', '\n', '\r']) {
            Some((first, _)) => format!("{}...", escaped(first)),
            None => escaped(text),
        },
        value => {
            let tree =
                goyaml::json::from_json_exact(value.to_string().as_bytes(), &Limits::default());
            let text = sprint(&[from_tree(tree.unwrap_or_default())]);
            // What is in lists and maps could break lines too.
            escaped(&String::from_utf8_lossy(&text)).replace(['\x0c', '\n'], " ")
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\x1b', "^[").replace('\r', "\\r")
}

/// Seconds in words (`HumanDuration` in `k8s.io/apimachinery/pkg/util/duration`).
fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |large: (i64, char), small: (i64, char)| {
        let (whole, rest) = (seconds / large.0, seconds % large.0 / small.0);
        let rest = if rest == 0 { String::new() } else { format!("{rest}{}", small.1) };
        format!("{whole}{}{rest}", large.1)
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two((MINUTE, 'm'), (1, 's')),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two((HOUR, 'h'), (MINUTE, 'm')),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two((DAY, 'd'), (HOUR, 'h')),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two((YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::{TablePrinter, human_duration};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn printed(objects: &[Value]) -> String {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap_or_default();
        let (mut printer, mut out) = (TablePrinter::new(now), String::new());
        for object in objects {
            printer.print(object, &mut out);
        }
        out
    }

    fn table(columns: &[(&str, i32)], rows: &Value) -> Value {
        let columns: Vec<Value> = columns
            .iter()
            .map(|(name, priority)| json!({ "name": name, "type": "string", "priority": priority }))
            .collect();
        let rows = rows.as_array().cloned().unwrap_or_default();
        let rows: Vec<Value> = rows.iter().map(|cells| json!({ "cells": cells })).collect();
        let version = "meta.k8s.io/v1";
        json!({ "kind": "Table", "apiVersion": version, "columnDefinitions": columns, "rows": rows })
    }

    #[test]
    fn heads_are_printed_where_they_change() {
        let one = |name: &str| table(&[("Name", 0), ("Data", 0)], &json!([[name, 2]]));
        let other = table(&[("Name", 0), ("Wide", 1), ("Age", 0)], &json!([["x", "y", "3s"]]));
        let empty = table(&[("Name", 0), ("Ready", 0)], &json!([]));
        assert_eq!(
            printed(&[one("a"), one("longer"), other.clone(), one("b")]),
            "NAME   DATA\na      2\nlonger   2\nNAME   AGE\nx      3s\nNAME   DATA\nb      2\n"
        );
        // A table without rows has no head, and yet its columns count as the last ones.
        assert_eq!(
            printed(&[one("a"), empty, one("b")]),
            printed(&[one("a"), other, one("b")]).replace("NAME   AGE\nx      3s\n", "")
        );
    }

    #[test]
    fn cells_neither_break_lines_nor_reach_the_terminal() {
        let rows = json!([["a\nb", "\u{1b}[31m"], [1.5, true], [null, ["x", {"a": null}]], ["c"], ["d", "e", "too many"]]);
        assert_eq!(
            printed(&[table(&[("Na\u{1b}me", 0), ("X", 0)], &rows)]),
            "NA^[ME   X\na...     ^[[31m\n1.5      true\n         [x map[a:<nil>]]\nc\nd        e\n"
        );
    }

    #[test]
    fn an_object_without_a_table_has_name_and_age() {
        let object = |name: &str, created: &str| json!({ "kind": "X", "metadata": { "name": name, "creationTimestamp": created } });
        let list = json!({ "kind": "XList", "items": [object("b", ""), object("c", "2026-01-02T03:04:00Z")] });
        let broken = json!({ "kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": 7 });
        assert_eq!(
            printed(&[object("a", "2025-01-02T03:04:05Z"), list, broken]),
            "NAME   AGE\na      365d\nb     <unknown>\nc     5s\n      <unknown>\n"
        );
    }

    #[test]
    fn durations_are_those_of_kubectl() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_861, "3h1m"),
            (28_799, "7h59m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_199, "7d23h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
            (i64::MAX, "292471208677y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
