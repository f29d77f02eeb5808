//! Where documents are kept.

use std::path::PathBuf;

use registry_core::documents::Documents;
use serde::Deserialize;

use super::{EmbeddingSettings, Settings};
use crate::server::Upload;

/// The file in the data folder that holds documents where nothing else is said.
const FILE: &str = "documents.db";

/// Where documents are kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentSettings {
    /// The file; `documents.db` in the data folder where nothing is said.
    pub file: Option<PathBuf>,
    /// Whether the server has its model draw names and relations from what is added, which costs a question for each passage.
    pub extract: bool,
    /// Who may add documents over HTTP.
    pub upload: Upload,
    /// The model that makes their vectors; without, they are found by their words alone.
    pub embeddings: EmbeddingSettings,
}

impl Settings {
    /// The file that holds the documents.
    pub(super) fn documents_file(&self) -> PathBuf {
        let named = self.documents.file.clone().filter(|file| !file.as_os_str().is_empty());
        named.unwrap_or_else(|| self.data_dir.join(FILE))
    }

    /// The documents of all tenants, whether there are any or not.
    pub fn documents(&self) -> Documents {
        self.with_embedder(Documents::in_file(self.documents_file()))
    }
}
