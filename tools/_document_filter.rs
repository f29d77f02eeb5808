//! Which documents a call is about.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use registry_core::prelude::*;
use toolrack_documents::{DocumentFilter, DocumentKind};

/// Which documents are meant.
#[args]
#[derive(Debug, Default)]
#[serde(default)]
pub(crate) struct DocumentsFilter {
    /// Only documents of this kind.
    kind: Option<DocumentKind>,
    /// Only the document of this path, or those in this folder.
    path: Option<String>,
    /// Only documents changed on this day or later, as in 2026-01-31.
    modified_since: Option<String>,
    /// Only documents changed before this day.
    modified_before: Option<String>,
}

impl DocumentsFilter {
    pub(crate) fn read(self) -> Result<DocumentFilter, ToolError> {
        Ok(DocumentFilter {
            kinds: self.kind.into_iter().collect(),
            below: self.path.filter(|path| !path.is_empty()),
            modified_since: time("modified_since", self.modified_since)?,
            modified_before: time("modified_before", self.modified_before)?,
        })
    }
}

/// A time, or a day's beginning (UTC).
fn time(name: &str, text: Option<String>) -> Result<Option<Timestamp>, ToolError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    let time = text.parse::<Timestamp>().ok().or_else(day);
    let fault =
        || ToolError::invalid(format!("`filter.{name}`: `{text}` is no date; write one as in 2026-01-31"));
    time.map(Some).ok_or_else(fault)
}
