//! The parts of results in a terminal: tables are drawn, text is printed, files are saved or named.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use registry_core::{Content, cell_text};
use serde_json::Value;

use super::{
    out::{count, print_line, table, tell},
    terminal::one_line,
};

/// How many rows of a table are drawn.
const ROWS: usize = 200;
/// How many files of one name are kept beside each other.
const SAME_NAME: usize = 1000;

/// Where the files that tools give are saved.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Output {
    /// Save the files that tools give in this folder; without it they are only named
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl Output {
    /// Shows a part of a result.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(super) fn show(&self, part: &Content) -> Result<(), String> {
        match part {
            Content::Text { text } | Content::Markdown { text } => print_line(text).map(drop),
            Content::Table(table) => {
                print_line(drawn(table.columns(), table.rows(), table.rows().len())).map(drop)
            }
            _ => {
                match part.blob().map(|blob| (BASE64_STANDARD.decode(blob.base64), blob)) {
                    Some((Ok(bytes), blob)) => self.file(&blob.name, blob.media_type, &bytes),
                    _ => tell(one_line(&part.for_model())),
                }
                Ok(())
            }
        }
    }

    /// Saves a file, or names it.
    pub(super) fn file(&self, name: &str, media_type: &str, bytes: &[u8]) {
        let what = format!("{name} ({media_type}, {})", count(bytes.len(), "byte"));
        tell(one_line(&match &self.output {
            None => format!("· {what}; --output FOLDER saves it"),
            Some(folder) => match saved(folder, name, bytes) {
                Ok(file) => format!("· {what} is saved as {}", file.display()),
                Err(fault) => format!("error: {what} cannot be saved: {fault}"),
            },
        }));
    }
}

/// A table as text.
pub(super) fn drawn(columns: &[String], rows: &[Vec<Value>], total: usize) -> String {
    // A cell that turned the terminal around would do so in the middle of a line that is padded.
    let mut drawn = table(columns.iter().map(|name| one_line(name)).collect::<Vec<_>>());
    for row in rows.iter().take(ROWS) {
        drawn.add_row(row.iter().map(|cell| one_line(&cell_text(cell))).collect::<Vec<_>>());
    }
    match total.saturating_sub(rows.len().min(ROWS)) {
        0 => drawn.to_string(),
        more => format!("{drawn}\n… {}", count(more, "more row")),
    }
}

/// Writes a new file, under another name where there is one already.
fn saved(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    for number in 1..=SAME_NAME {
        let file = match number {
            1 => folder.join(name),
            number => folder.join(format!("{stem}-{number}{ending}")),
        };
        match OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(mut new) => return new.write_all(bytes).map(|()| file).map_err(|error| error.to_string()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("{} has {SAME_NAME} files of this name", folder.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b19_a_table_is_drawn_and_cannot_steer_the_terminal() {
        let rows = vec![vec![json!("Oslo\u{1b}[2J"), json!(3.5)], vec![Value::Null, json!([1])]];
        let text = drawn(&["city".into(), "degrees".into()], &rows, 5);
        assert!(text.contains("city") && text.contains("Oslo\\u{1b}[2J") && text.contains("[1]"), "{text}");
        assert!(text.ends_with("\n… 3 more rows"), "{text}");
    }

    #[test]
    fn b19_a_file_is_saved_beside_one_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("new");
        for (bytes, name) in [("a", "r.csv"), ("b", "r-2.csv"), ("c", "r-3.csv")] {
            assert_eq!(saved(&inner, "r.csv", bytes.as_bytes()).unwrap(), inner.join(name));
            assert_eq!(std::fs::read_to_string(inner.join(name)).unwrap(), bytes);
        }
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(saved(&folder.path().join("file"), "r.csv", b"a").is_err());
    }
}
