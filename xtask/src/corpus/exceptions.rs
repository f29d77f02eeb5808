//! The cases that are known to be read otherwise, and why.

use std::{collections::BTreeMap, fs, path::Path};

use crate::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The case contradicts what this project has decided.
    Ours,
    /// The case is believed to be wrong.
    Wrong,
}

/// The exceptions by the id of their case.
pub(super) type Exceptions = BTreeMap<String, Kind>;

/// Reads lines of an id, `ours` or `wrong`, and a reason, with tabs between them.
pub(super) fn read_file(file: &Path) -> Result<Exceptions> {
    let text =
        fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let mut exceptions = Exceptions::new();
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let mut fault = |fault: &str| faults.push(format!("{}:{number}: {fault}", file.display()));
        let mut fields = line.splitn(3, '\t').map(str::trim);
        let (id, kind, reason) = (fields.next(), fields.next(), fields.next());
        let kind = match kind {
            Some("ours") => Kind::Ours,
            Some("wrong") => Kind::Wrong,
            _ => {
                fault("behind the id and a tab stands neither `ours` nor `wrong`");
                continue;
            }
        };
        if reason.is_none_or(str::is_empty) {
            fault("there is no reason in its third column");
        }
        if exceptions.insert(id.unwrap_or_default().to_owned(), kind).is_some() {
            fault("this id is listed twice");
        }
    }
    if faults.is_empty() { Ok(exceptions) } else { Err(faults.join("\n")) }
}
