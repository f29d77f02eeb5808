//! Where documents are kept.

use std::{fmt, path::PathBuf};

use serde::Deserialize;
use toolrack_documents::Documents;

use super::{EmbeddingSettings, Settings};
use crate::server::Upload;

/// The file in the data folder that holds documents where nothing else is said.
const FILE: &str = "documents.db";

/// Where documents are kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentSettings {
    /// The file. Where nothing is said, documents are in the PostgreSQL database that is the store, else in `documents.db` in the data
    /// folder.
    pub file: Option<PathBuf>,
    /// Whether the server has its model draw names and relations from what is added, which costs a question for each passage.
    pub extract: bool,
    /// Who may add documents over HTTP.
    pub upload: Upload,
    /// The model that makes their vectors; without, they are found by their words alone.
    pub embeddings: EmbeddingSettings,
}

impl Settings {
    /// Where the documents are.
    pub(in crate::cli) fn document_place(&self) -> DocumentPlace<'_> {
        let named = self.documents.file.as_ref().filter(|file| !file.as_os_str().is_empty());
        match (named, self.store.postgres()) {
            (Some(file), _) => DocumentPlace::File(file.clone()),
            (None, Some(url)) => DocumentPlace::Postgres(url),
            (None, None) => DocumentPlace::File(self.data_dir.join(FILE)),
        }
    }

    /// The documents of all tenants, whether there are any or not. Whoever asks gets the same, and sees at once what another adds: a host that
    /// provides documents to its tools provides these, as the server adds to them over HTTP. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the URL of the database is none.
    pub fn documents(&self) -> Result<Documents, String> {
        if let Some(documents) = self.opened_documents.get() {
            return Ok(documents.clone());
        }
        let documents = match self.document_place() {
            DocumentPlace::File(file) => Documents::in_file(file),
            DocumentPlace::Postgres(url) => {
                Documents::in_postgres(url).map_err(|fault| format!("store.url: {fault}"))?
            }
        };
        Ok(self.opened_documents.get_or_init(|| self.with_embedder(documents)).clone())
    }

    /// Looks what documents there are, where the host provides them: a command that calls one tool does not wait until it is known by itself.
    pub(in crate::cli) async fn refresh_documents(&self) {
        if let Some(documents) = self.opened_documents.get() {
            documents.refresh().await;
        }
    }
}

/// Where documents are.
#[derive(Debug, PartialEq)]
pub(in crate::cli) enum DocumentPlace<'s> {
    File(PathBuf),
    Postgres(&'s str),
}

impl fmt::Display for DocumentPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => std::path::absolute(file).as_ref().unwrap_or(file).display().fmt(f),
            // What stands before `@` may be a password.
            Self::Postgres(url) => write!(f, "PostgreSQL at {}", url.rsplit('@').next().unwrap_or(url)),
        }
    }
}
