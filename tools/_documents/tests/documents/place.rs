//! Where documents are kept: what holds for one holds for all.

use std::path::PathBuf;

use tempfile::TempDir;
use toolrack_documents::{Added, DocumentKind, Documents, read};

#[allow(dead_code)] // of which the tests of the stores use more
#[path = "../../../../registry-core/stores/tests/stores/servers.rs"]
mod servers;

/// A place for documents, that is removed at the end.
#[derive(Debug)]
pub(crate) enum Place {
    File(TempDir),
    Postgres(String),
}

impl Place {
    /// A file, and a database as far as there is a server; `test` is printed where there is none.
    pub(crate) fn all(test: &str) -> Vec<Self> {
        let database = servers::postgres(test).map(Self::Postgres);
        [Some(Self::file()), database].into_iter().flatten().collect()
    }

    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    /// The documents, as another process has them.
    pub(crate) fn open(&self) -> Documents {
        match self {
            Self::File(folder) => Documents::in_file(folder.path().join("a/documents.db")),
            Self::Postgres(url) => Documents::in_postgres(url).unwrap(),
        }
    }
}

pub(crate) async fn add(documents: &Documents, path: &str, text: &str) -> Added {
    let kind = DocumentKind::of(&PathBuf::from(path)).unwrap();
    let modified = Some("2026-03-01T12:00:00Z".parse().unwrap());
    documents.add(read::document(path, kind, text.as_bytes(), modified).unwrap()).await.unwrap()
}
