//! Where documents are kept.

use std::path::PathBuf;

use registry_core::documents::Documents;
use serde::Deserialize;

use super::Settings;

/// The file in the data folder that holds documents where nothing else is said.
const FILE: &str = "documents.db";

/// Where documents are kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocumentSettings {
    /// The file. Where nothing is said, documents are in the PostgreSQL database that is the store, else in `documents.db` in the data
    /// folder.
    pub file: Option<PathBuf>,
}

impl Settings {
    /// The documents of all tenants, whether there are any or not. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the URL of the database is none.
    pub fn documents(&self) -> Result<Documents, String> {
        let named = self.documents.file.as_ref().filter(|file| !file.as_os_str().is_empty());
        match (named, self.store.postgres()) {
            (Some(file), _) => Ok(Documents::in_file(file)),
            (None, Some(url)) => Documents::in_postgres(url).map_err(|fault| format!("store.url: {fault}")),
            (None, None) => Ok(Documents::in_file(self.data_dir.join(FILE))),
        }
    }
}
