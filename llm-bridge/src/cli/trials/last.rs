//! Keeps what was seen, so that the next run is compared with it.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::report::Report;

/// The file in the data folder.
const FILE: &str = "tries.json";

/// How often an example's call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) tries: u32,
    /// The tool was called.
    pub(super) chosen: u32,
    /// It was called as expected.
    pub(super) right: u32,
}

/// By model, tool and question.
type Kept = BTreeMap<String, BTreeMap<String, BTreeMap<String, Seen>>>;

/// Adds to each row what was seen the last time, and keeps what is seen now.
///
/// # Errors
/// When the file cannot be read or written; the report is whole all the same.
pub(super) fn compare_and_keep(folder: &Path, report: &mut Report) -> Result<(), String> {
    let file = folder.join(FILE);
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut kept: Kept = match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| format!("{}; delete the file to begin anew", fault(&error)))?,
        Err(error) if error.kind() == ErrorKind::NotFound => Kept::new(),
        Err(error) => return Err(fault(&error)),
    };
    let of_model = kept.entry(report.model.clone()).or_default();
    for row in &mut report.rows {
        let seen = Seen { tries: row.tries, chosen: row.chosen, right: row.right };
        row.before = of_model.entry(row.tool.clone()).or_default().insert(row.question.clone(), seen);
    }
    let write = || {
        fs::create_dir_all(folder)?;
        let mut new = NamedTempFile::new_in(folder)?;
        new.write_all(&serde_json::to_vec_pretty(&kept)?)?;
        new.persist(&file).map_err(|error| error.error)?;
        Ok::<(), std::io::Error>(())
    };
    write().map_err(|error| fault(&error))
}

#[cfg(test)]
mod tests {
    use registry_core::Example;
    use serde_json::json;

    use super::*;
    use crate::cli::trials::report::Row;

    #[test]
    fn b18_the_next_run_is_compared_with_the_last_of_the_same_model() {
        let folder = tempfile::tempdir().unwrap();
        let example = Example { question: "Rain?".to_owned(), arguments: json!({}) };
        let run = |model: &str, right: u32| {
            let mut report = Report::new(String::new(), 1, 5);
            report.model = model.to_owned();
            report.rows.push(Row { tries: 5, chosen: right, right, ..Row::new("weather", &example) });
            compare_and_keep(folder.path(), &mut report).unwrap();
            report.rows[0].before.map(|before| before.right)
        };
        assert_eq!(run("one", 2), None);
        assert_eq!(run("two", 4), None);
        assert_eq!(run("one", 5), Some(2));
        assert_eq!(run("one", 5), Some(5));
        fs::write(folder.path().join(FILE), "{").unwrap();
        let mut report = Report::new(String::new(), 1, 5);
        assert!(compare_and_keep(folder.path(), &mut report).unwrap_err().contains("delete the file"));
    }
}
