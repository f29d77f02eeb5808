//! Tables and formatted text that a tool gives.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Content;
use crate::json::to_value;

/// A text of a table that is longer is shortened, in bytes.
const LONGEST: usize = 64 * 1024;

/// A table, as what a tool returns. A chat draws it for the person; the model gets it as CSV.
///
/// ```
/// use registry_core::Table;
///
/// let table = Table::new(["city", "degrees"]).row(("Oslo", 3.5)).row(("Bergen, Norway", 7));
/// assert_eq!(table.to_csv(), "city,degrees\nOslo,3.5\n\"Bergen, Norway\",7\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// A table with these columns and no rows yet.
    pub fn new<C: Into<String>>(columns: impl IntoIterator<Item = C>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// A table of values with fields, such as structs: each is a row, and each field a column, in the order in which they come.
    pub fn of<T: Serialize>(values: impl IntoIterator<Item = T>) -> Self {
        let mut table = Self::default();
        for value in values {
            let fields = match to_value(&value).unwrap_or_default() {
                Value::Object(fields) => fields,
                other => serde_json::Map::from_iter([("value".to_owned(), other)]),
            };
            let mut row = vec![Value::Null; table.columns.len()];
            for (name, value) in fields {
                match table.columns.iter().position(|column| *column == name) {
                    Some(at) => row.splice(at..=at, [value]).for_each(drop),
                    None => {
                        table.columns.push(name);
                        row.push(value);
                    }
                }
            }
            table.rows.push(row);
        }
        let width = table.columns.len();
        table.rows.iter_mut().for_each(|row| row.resize(width, Value::Null));
        table
    }

    /// With another row: a tuple, a list or a struct with a value for each column. A row of another length is a fault of the tool,
    /// with which its call fails.
    #[must_use]
    pub fn row(mut self, cells: impl Serialize) -> Self {
        self.push(cells);
        self
    }

    /// Adds a row; see [`row`](Self::row).
    pub fn push(&mut self, cells: impl Serialize) {
        self.rows.push(match to_value(&cells) {
            Ok(Value::Array(cells)) => cells,
            Ok(Value::Object(fields)) => fields.into_iter().map(|(_, value)| value).collect(),
            Ok(cell) => vec![cell],
            Err(_) => Vec::new(),
        });
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows. Each has a value for each column.
    pub fn rows(&self) -> &[Vec<Value>] {
        &self.rows
    }

    /// The first row that is not as long as there are columns, from 1, and its length.
    pub(super) fn uneven(&self) -> Option<(usize, usize)> {
        let at = self.rows.iter().position(|row| row.len() != self.columns.len())?;
        Some((at + 1, self.rows.get(at).map_or(0, Vec::len)))
    }

    /// Comma-separated values (RFC 4180) with the columns in the first line.
    pub fn to_csv(&self) -> String {
        let mut csv = String::new();
        write_line(&mut csv, self.columns.iter().map(String::as_str));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(cell_text).collect();
            write_line(&mut csv, cells.iter().map(String::as_str));
        }
        csv
    }

    /// CSV of which the rows in the middle are left out where there are many.
    pub(super) fn to_short_csv(&self) -> String {
        let csv = self.to_csv();
        let head = csv.floor_char_boundary(LONGEST / 2);
        let tail = csv.ceil_char_boundary(csv.len().saturating_sub(LONGEST / 2));
        let line = |text: Option<&str>| text.and_then(|text| text.rfind('\n')).map(|at| at + 1);
        let cut = line(csv.get(..head)).zip(csv.get(tail..).and_then(|rest| rest.find('\n')));
        match cut.filter(|(head, end)| head < &(tail + end)) {
            Some((head, end)) if csv.len() > LONGEST => {
                let (before, after) = (csv.get(..head).unwrap_or_default(), csv.get(tail + end + 1..));
                let left_out = csv.get(head..=tail + end).unwrap_or_default().matches('\n').count();
                format!("{before}[… {left_out} more lines were left out]\n{}", after.unwrap_or_default())
            }
            _ => csv,
        }
    }

    /// The schema of a table as a value.
    pub(super) fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "columns": {"type": "array", "items": {"type": "string"}},
                "rows": {
                    "type": "array",
                    "description": "A value for each column.",
                    "items": {"type": "array", "items": {}},
                },
            },
            "required": ["columns", "rows"],
        })
    }
}

impl From<Table> for Content {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

/// A value as the text of a cell: nothing for `null`.
pub fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn write_line<'c>(csv: &mut String, cells: impl Iterator<Item = &'c str>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            csv.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            csv.push('"');
            csv.push_str(&cell.replace('"', "\"\""));
            csv.push('"');
        } else {
            csv.push_str(cell);
        }
    }
    csv.push('\n');
}

/// Markdown, as what a tool returns. A chat renders it for the person; the model gets it as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markdown(pub String);

impl Markdown {
    /// Formatted text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<Markdown> for Content {
    fn from(Markdown(text): Markdown) -> Self {
        Self::Markdown { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b19_a_table_is_made_of_rows_or_of_values() {
        #[derive(Serialize)]
        struct City {
            name: &'static str,
            degrees: Option<f64>,
        }
        let cities = [City { name: "Oslo", degrees: Some(3.5) }, City { name: "Bergen", degrees: None }];
        let table = Table::of(&cities);
        assert_eq!(table.columns(), ["name", "degrees"]);
        assert_eq!(
            table,
            Table::new(["name", "degrees"]).row(("Oslo", 3.5)).row(["Bergen".into(), Value::Null])
        );
        assert_eq!(table.to_csv(), "name,degrees\nOslo,3.5\nBergen,\n");
        let grown = Table::of([json!({"a": 1}), json!({"b": [2], "a": null}), json!(3)]);
        assert_eq!(grown.to_csv(), "a,b,value\n1,,\n,[2],\n,,3\n");
        assert_eq!(grown.uneven(), None);
        assert_eq!(Table::new(["a", "b"]).row((1, 2)).row(1).uneven(), Some((2, 1)));
        assert_eq!(Table::new(["a"]).row(["x \"y\"\nz"]).to_csv(), "a\n\"x \"\"y\"\"\nz\"\n");
    }

    #[test]
    fn b19_the_text_of_a_long_table_is_shortened_between_lines() {
        let mut table = Table::new(["number", "text"]);
        (0..20_000).for_each(|number| table.push((number, "ü")));
        let (long, short) = (table.to_csv(), table.to_short_csv());
        assert!(short.len() <= LONGEST + 64 && long.len() > 2 * LONGEST, "{}", short.len());
        assert!(short.starts_with("number,text\n0,ü\n") && short.ends_with("\n19999,ü\n"), "{short}");
        let kept = short.lines().filter(|line| !line.starts_with('[')).count();
        assert!(short.contains(&format!("\n[… {} more lines were left out]\n", 20_001 - kept)));
        let lines: std::collections::HashSet<&str> = long.lines().collect();
        assert!(short.lines().all(|line| line.starts_with('[') || lines.contains(line)));
        let one = Table::new(["a"]).row(["x".repeat(3 * LONGEST)]);
        assert!(one.to_short_csv().len() < 4 * LONGEST);
    }
}
