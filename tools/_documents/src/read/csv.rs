//! Tables: each row is a line that names its columns, so that it can be understood away from its table.

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use serde_json::{Map, json};
use toolrack_web::Line;

use super::Text;

/// The longest value that is read of a cell, and the longest name of a column, in characters.
const MAX_CELL: usize = 2000;
const MAX_COLUMN: usize = 200;
/// How much text its rows may come to, in bytes: each has the names of its columns in it.
pub(super) const MAX_TEXT: usize = 64 * 1024 * 1024;
/// How much that may be at least, however small the file is; and how many times its size.
const LEAST_TEXT: usize = 16 * 1024 * 1024;
const MAX_GROWTH: usize = 16;

pub(super) fn read(text: &str, name: &str) -> Result<Text, String> {
    table(text, name, delimiter(text))
}

/// Rows as CSV, with commas; a row is a line.
pub(super) fn written(rows: &[Vec<String>]) -> Result<String, String> {
    let mut writer = WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in rows {
        let filled = row.iter().rposition(|cell| !cell.trim().is_empty()).map_or(1, |last| last + 1);
        let cells = row.iter().take(filled).map(|cell| cell.replace(['\r', '\n'], " "));
        let cells: Vec<String> = cells.collect();
        // One without any would be left out, and the numbers of the others with it.
        let cells = if cells.is_empty() { vec![String::new()] } else { cells };
        writer.write_record(cells).map_err(|error| error.to_string())?;
    }
    let written = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(written).map_err(|error| error.to_string())
}

pub(super) fn table(text: &str, name: &str, delimiter: u8) -> Result<Text, String> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    if header.iter().all(|column| column.trim().is_empty()) {
        return Ok(Text::default());
    }
    let columns: Vec<String> =
        header.iter().map(|column| column.trim().chars().take(MAX_COLUMN).collect()).collect();
    let mut lines =
        vec![Line::heading(1, 1, name), Line::text(1, format!("Columns: {}", columns.join(", ")))];
    let most = text.len().saturating_mul(MAX_GROWTH).clamp(LEAST_TEXT, MAX_TEXT);
    let (mut rows, mut length) = (0_u64, 0);
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let number = record.position().map_or(0, |position| position.line());
        rows += 1;
        let row = row(&columns, &record);
        if !row.is_empty() {
            length += row.len();
            if length > most {
                let most = most >> 20;
                return Err(format!(
                    "with the names of its columns it has more than {most} MiB of text; split it"
                ));
            }
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            lines.push(Line { verbatim: true, ..Line::text(number, row) });
        }
    }
    let mut metadata = Map::new();
    metadata.insert("columns".to_owned(), json!(columns));
    metadata.insert("rows".to_owned(), json!(rows));
    Ok(Text { title: Some(name.to_owned()), metadata, lines, ..Text::default() })
}

/// `name: Ada; born: 1815`.
fn row(columns: &[String], record: &StringRecord) -> String {
    let cells = record.iter().enumerate().filter(|(_, value)| !value.trim().is_empty()).map(|(at, value)| {
        let value: String =
            value.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_CELL).collect();
        match columns.get(at).filter(|column| !column.is_empty()) {
            Some(column) => format!("{column}: {value}"),
            None => format!("column {}: {value}", at + 1),
        }
    });
    cells.collect::<Vec<_>>().join("; ")
}

/// What is most in the first line.
fn delimiter(text: &str) -> u8 {
    let header = text.lines().next().unwrap_or_default().as_bytes();
    let count = |mark: &u8| header.iter().filter(|byte| *byte == mark).count();
    // Of those that are there as often, the last is taken.
    b"|;\t,".iter().copied().max_by_key(count).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        read(text, "people")
            .unwrap()
            .lines
            .into_iter()
            .map(|line| format!("{} {}", line.number, line.text))
            .collect()
    }

    #[test]
    fn p6_a_row_names_its_columns() {
        for text in [
            "name,born\nAda,1815\n\"Grace\nHopper\",1906\n",
            "name\tborn\nAda\t1815\n\"Grace\nHopper\"\t1906\n",
            "name;born\nAda;1815\n\"Grace\nHopper\";1906",
        ] {
            assert_eq!(
                shown(text),
                [
                    "1 people",
                    "1 Columns: name, born",
                    "2 name: Ada; born: 1815",
                    "3 name: Grace Hopper; born: 1906"
                ],
                "{text}"
            );
        }
        let text = read("a,b\n1,2\n3\n", "x").unwrap();
        assert_eq!((&text.metadata["rows"], &text.metadata["columns"]), (&json!(2), &json!(["a", "b"])));
    }

    #[test]
    fn p6_rows_of_any_length_are_read() {
        assert_eq!(shown("a\n1,2\n,\n"), ["1 people", "1 Columns: a", "2 a: 1; column 2: 2"]);
        assert_eq!(shown("a,b\n\"open"), ["1 people", "1 Columns: a, b", "2 a: open"]);
        assert_eq!(read("", "x").unwrap(), Text::default());
    }

    #[test]
    fn p6_a_table_does_not_become_much_more_than_it_is() {
        let column = "c".repeat(1_000_000);
        let table = |rows: usize| format!("{column}\n{}", "1\n".repeat(rows));
        assert_eq!(read(&table(9), "x").unwrap().lines[2].text, format!("{}: 1", &column[..MAX_COLUMN]));
        // A small one may become 16 MiB, a larger one sixteen times what it is, up to the most.
        let small = format!("{}\n{}", &column[..MAX_COLUMN], "1\n".repeat(LEAST_TEXT / MAX_COLUMN));
        let refused = read(&small, "x").err().unwrap();
        assert_eq!(refused, "with the names of its columns it has more than 16 MiB of text; split it");
        let long = format!("{}\n", "c".repeat(MAX_COLUMN)).repeat(4 << 20 >> 8);
        let wide = format!("{column}\n{}{long}", "1\n".repeat(MAX_TEXT / MAX_COLUMN));
        let refused = read(&(wide + &" ".repeat(4 << 20)), "x").err().unwrap();
        assert_eq!(refused, "with the names of its columns it has more than 64 MiB of text; split it");
    }
}
