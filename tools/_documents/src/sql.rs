//! What the databases that hold documents have in common.

use jiff::Timestamp;
use sqlx::{ColumnIndex, Decode, FromRow, Row, Type};

use super::{
    DocumentFilter, DocumentKind, Passage, StoredDocument, UnreadPassage,
    database::Statement,
    graph::{Edge, Entity},
    rows::folder,
};

/// A time as it is kept, to the second. Such texts sort like the times.
pub(super) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The columns of a passage; its score is that of a row of `best`.
pub(super) const PASSAGE: &str = "SELECT path, document.title, document.kind, section, first, last, text,
    CAST(best.score AS DOUBLE PRECISION) AS score";

/// Leaves the documents that pass the filter, of a table `document`.
pub(super) fn narrow(statement: &mut Statement, filter: &DocumentFilter) {
    if !filter.kinds.is_empty() {
        statement.push(" AND document.kind IN (");
        for (at, kind) in filter.kinds.iter().enumerate() {
            statement.push(if at > 0 { ", " } else { "" }).bind(kind.as_str());
        }
        statement.push(")");
    }
    if let Some(path) = &filter.below {
        // No path has a NUL, and PostgreSQL takes none.
        let path = path.replace('\0', " ");
        let folder = folder(&path);
        statement.push(" AND (document.path = ").bind(&*path);
        statement.push(" OR substr(document.path, 1, CAST(").bind(folder.chars().count());
        statement.push(" AS INTEGER)) = ").bind(&*folder).push(")");
    }
    if let Some(since) = filter.modified_since {
        statement.push(" AND document.modified >= ").bind(&*seconds(since));
    }
    if let Some(before) = filter.modified_before {
        statement.push(" AND document.modified < ").bind(&*seconds(before));
    }
}

/// A row whose columns are found by name.
macro_rules! from_row {
    ($this:ty, |$row:ident| $read:expr) => {
        impl<'r, R: Row> FromRow<'r, R> for $this
        where
            &'static str: ColumnIndex<R>,
            String: Decode<'r, R::Database> + Type<R::Database>,
            Option<String>: Decode<'r, R::Database> + Type<R::Database>,
            i64: Decode<'r, R::Database> + Type<R::Database>,
            f64: Decode<'r, R::Database> + Type<R::Database>,
        {
            fn from_row($row: &'r R) -> Result<Self, sqlx::Error> {
                $read
            }
        }
    };
}

from_row!(Passage, |row| {
    let place = |number: i64| u32::try_from(number).unwrap_or_default();
    Ok(Self {
        path: row.try_get("path")?,
        title: row.try_get("title")?,
        kind: kind(row.try_get("kind")?)?,
        section: row.try_get("section")?,
        first: place(row.try_get("first")?),
        last: place(row.try_get("last")?),
        score: row.try_get("score")?,
        text: row.try_get("text")?,
        also_in: Vec::new(),
    })
});

from_row!(Entity, |row| {
    Ok(Self { id: row.try_get("id")?, name: row.try_get("name")?, kind: row.try_get("kind")? })
});

from_row!(Edge, |row| {
    Ok(Self {
        subject: row.try_get("subject")?,
        subject_name: row.try_get("subject_name")?,
        relation: row.try_get("relation")?,
        object: row.try_get("object")?,
        object_name: row.try_get("object_name")?,
        passages: row.try_get("passages")?,
        passage: Passage::from_row(row)?,
    })
});

from_row!(UnreadPassage, |row| {
    Ok(Self {
        id: row.try_get("id")?,
        title: row.try_get("title")?,
        section: row.try_get("section")?,
        text: row.try_get("text")?,
    })
});

from_row!(StoredDocument, |row| {
    let time = |text: String| text.parse::<Timestamp>().map_err(|error| sqlx::Error::Decode(error.into()));
    let size = |number: i64| u64::try_from(number).unwrap_or_default();
    let metadata: String = row.try_get("metadata")?;
    Ok(Self {
        path: row.try_get("path")?,
        title: row.try_get("title")?,
        kind: kind(row.try_get("kind")?)?,
        bytes: size(row.try_get("bytes")?),
        passages: size(row.try_get("passages")?),
        language: row.try_get("language")?,
        modified: row.try_get::<Option<String>, _>("modified")?.map(time).transpose()?,
        added: time(row.try_get("added")?)?,
        hash: row.try_get("hash")?,
        metadata: serde_json::from_str(&metadata).map_err(|error| sqlx::Error::Decode(error.into()))?,
    })
});

fn kind(name: String) -> Result<DocumentKind, sqlx::Error> {
    name.parse().map_err(|error: String| sqlx::Error::Decode(error.into()))
}
