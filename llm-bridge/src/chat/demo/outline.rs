//! JSON as Markdown that reads well: lists, tables, and passages with where they are from.

use serde_json::{Map, Value};

use super::reply::{is_scalar, one_line, scalar};

/// Fields that hold the text of a thing found, and those that say where it is from.
const TEXTS: [&str; 3] = ["text", "snippet", "content"];
const PLACES: [&str; 6] = ["title", "source", "url", "path", "section", "place"];

/// Of a text with many lines the first and the last are shown: what a program has to say of its end stands there.
const HEAD: usize = 8;
const TAIL: usize = 6;

/// A value as a Markdown list, up to about so many bytes.
pub(super) fn outline(value: &Value, most: usize) -> String {
    let mut out = Outline { text: String::new(), most };
    out.value(value, 0);
    out.text
}

struct Outline {
    text: String,
    most: usize,
}

impl Outline {
    fn line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&format!("{}{text}\n", "  ".repeat(depth)));
    }

    fn value(&mut self, value: &Value, depth: usize) {
        // What is past the limit is cut off anyway.
        if self.text.len() > self.most {
            return;
        }
        match value {
            Value::Object(fields) => {
                let table = table(fields);
                if let Some(table) = &table {
                    self.text.push_str(table);
                }
                let rest = fields.iter().filter(|(name, value)| {
                    // That nothing is missing needs no saying.
                    !(table.is_some() && matches!(name.as_str(), "columns" | "rows"))
                        && !(name.as_str() == "truncated" && **value == Value::Bool(false))
                });
                rest.for_each(|(name, value)| self.field(name, value, depth));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| self.item(at + 1, item, depth));
            }
            scalar_value => self.line(depth, &format!("- {}", one_line(&scalar(scalar_value)))),
        }
    }

    fn field(&mut self, name: &str, value: &Value, depth: usize) {
        let name = one_line(name);
        match value {
            Value::String(text) if text.trim_end().contains('\n') => {
                self.line(depth, &format!("- **{name}**:"));
                // A quotation, so that nothing in it reads as our own markup.
                let lines: Vec<&str> = text.trim_end().lines().collect();
                let left_out = lines.len().saturating_sub(HEAD + TAIL + 1);
                for (at, line) in lines.iter().enumerate() {
                    if left_out > 0 && at == HEAD {
                        self.line(depth + 1, &format!("> … ({} lines)", left_out + 1));
                    } else if left_out == 0 || at < HEAD || at > HEAD + left_out {
                        self.line(depth + 1, format!("> {line}").trim_end());
                    }
                }
            }
            Value::Object(fields) if fields.is_empty() => self.line(depth, &format!("- **{name}**: none")),
            Value::Array(items) if items.is_empty() => self.line(depth, &format!("- **{name}**: none")),
            Value::Object(_) | Value::Array(_) if depth <= 3 => {
                self.line(depth, &format!("- **{name}**:"));
                self.value(value, depth + 1);
            }
            Value::Object(_) | Value::Array(_) => self.line(depth, &format!("- **{name}**: {value}")),
            value => self.line(depth, &format!("- **{name}**: {}", one_line(&scalar(value)))),
        }
    }

    fn item(&mut self, number: usize, item: &Value, depth: usize) {
        if self.text.len() > self.most {
            return;
        }
        if let Some((text, from)) = item.as_object().and_then(passage) {
            self.line(depth, &format!("{number}. {}", one_line(&text)));
            self.line(depth, &format!("   — {}", one_line(&from)));
        } else if is_scalar(item) || depth > 3 {
            self.line(depth, &format!("- {}", one_line(&scalar(item))));
        } else {
            self.line(depth, &format!("- {number}."));
            self.value(item, depth + 1);
        }
    }
}

/// A text, and where it is from with what else is said of it.
fn passage(fields: &Map<String, Value>) -> Option<(String, String)> {
    let text = TEXTS.iter().find_map(|name| Some((*name, fields.get(*name)?.as_str()?)))?;
    let from: Vec<&str> = PLACES
        .iter()
        .filter_map(|name| fields.get(*name)?.as_str())
        .filter(|place| !place.is_empty())
        .collect();
    if from.is_empty() || !fields.values().all(is_scalar) {
        return None;
    }
    let rest: Vec<String> = fields
        .iter()
        .filter(|(name, _)| *name != text.0 && !PLACES.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {}", scalar(value)))
        .collect();
    let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
    let said = if text.1.trim().is_empty() { from.first()? } else { text.1 };
    Some((said.to_owned(), format!("{}{rest}", from.join(", "))))
}

/// Columns and rows as a table.
fn table(fields: &Map<String, Value>) -> Option<String> {
    let columns = fields.get("columns")?.as_array().filter(|columns| columns.iter().all(is_scalar))?;
    let rows: Vec<&Vec<Value>> =
        fields.get("rows")?.as_array()?.iter().map(Value::as_array).collect::<Option<_>>()?;
    if columns.is_empty() || rows.iter().any(|row| row.len() != columns.len()) {
        return None;
    }
    let line = |cells: &[Value]| {
        let cells: Vec<String> =
            cells.iter().map(|cell| one_line(&scalar(cell)).replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rows: String = rows.into_iter().map(|row| line(row)).collect();
    Some(format!("{}|{}\n{rows}\n", line(columns), "---|".repeat(columns.len())))
}
