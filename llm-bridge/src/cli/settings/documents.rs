//! Where documents are kept.

use std::path::PathBuf;

use registry_core::documents::Documents;
use serde::Deserialize;

use super::Settings;
use crate::server::Upload;

/// The file in the data folder that holds documents where nothing else is said.
const FILE: &str = "documents.db";

/// Where documents are kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentSettings {
    /// The file; `documents.db` in the data folder where nothing is said.
    pub file: Option<PathBuf>,
    /// Who may add documents over HTTP.
    pub upload: Upload,
}

impl Settings {
    /// The file that holds the documents, whether it is there or not.
    pub fn documents_file(&self) -> PathBuf {
        let named = self.documents.file.clone().filter(|file| !file.as_os_str().is_empty());
        named.unwrap_or_else(|| self.data_dir.join(FILE))
    }

    /// The documents, where some were added.
    pub fn documents_there(&self) -> Option<Documents> {
        let file = self.documents_file();
        file.exists().then(|| Documents::in_file(file))
    }
}
