//! Where documents are kept.

use std::path::PathBuf;

use serde::Deserialize;
use toolrack_documents::Documents;

use super::{EmbeddingSettings, Place, Settings};
use crate::server::Upload;

/// The default file in the data folder.
const FILE: &str = "documents.db";

/// Where documents are kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentSettings {
    /// The file. By default documents are in the store's PostgreSQL database, or in `documents.db` in the data folder.
    pub file: Option<PathBuf>,
    /// Whether the server extracts names and relations from new documents, with a request to the model for each passage.
    pub extract: bool,
    /// Who may add documents over HTTP.
    pub upload: Upload,
    /// How many documents a user may have added over HTTP.
    pub max_documents_per_user: Option<u64>,
    /// How many MiB may be kept of them, index included.
    pub max_document_mebibytes_per_user: Option<u64>,
    /// The embedding model; without one, documents are found by their words only.
    pub embeddings: EmbeddingSettings,
}

impl Settings {
    /// Where the documents are.
    pub(in crate::cli) fn document_place(&self) -> Place<'_> {
        let named = self.documents.file.as_ref().filter(|file| !file.as_os_str().is_empty());
        match (named, self.store.postgres()) {
            (Some(file), _) => Place::File(file.clone()),
            (None, Some(url)) => Place::Postgres(url),
            (None, None) => Place::File(self.data_dir.join(FILE)),
        }
    }

    /// The documents of all tenants, which may be none yet. Every call returns the same instance, so tools see at once what the server adds over
    /// HTTP. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the URL of the database is invalid.
    pub fn documents(&self) -> Result<Documents, String> {
        if let Some(documents) = self.opened_documents.get() {
            return Ok(documents.clone());
        }
        let documents = match self.document_place() {
            Place::File(file) => Documents::in_file(file),
            Place::Postgres(url) => {
                Documents::in_postgres(url).map_err(|fault| format!("store.url: {fault}"))?
            }
        };
        Ok(self.opened_documents.get_or_init(|| self.with_embedder(documents)).clone())
    }

    /// Looks for documents now, if the host provides them: a command does not wait for the background task.
    pub(in crate::cli) async fn refresh_documents(&self) {
        if let Some(documents) = self.opened_documents.get() {
            documents.refresh().await;
        }
    }
}
