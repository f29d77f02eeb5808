//! Where documents are kept.

mod embeddings;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use registry_core::{Registry, Resources};
use serde::Deserialize;
use serde_json::{Value, json};
use toolrack_documents::{DocumentFilter, DocumentGraph, Documents};

pub use embeddings::EmbeddingSettings;

use super::{Place, Settings};
use crate::{
    cli::postgres,
    server::{ServerSettings, Upload, UploadLimits},
};

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
    /// The documents, once opened.
    #[serde(skip)]
    opened: Arc<OnceLock<Documents>>,
}

impl DocumentSettings {
    /// Environment variables override the file.
    pub(super) fn lay_over(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        self.embeddings.lay_over(variable)
    }

    /// What holds of them, whatever the file says.
    pub(super) fn shown(&self) -> Value {
        json!({"extract": self.extract, "upload": self.upload})
    }
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
        if let Some(documents) = self.documents.opened.get() {
            return Ok(documents.clone());
        }
        let documents = match self.document_place() {
            Place::File(file) => Documents::in_file(file),
            Place::Postgres(url) => {
                postgres::documents(url).map_err(|fault| format!("store.url: {fault}"))?
            }
        };
        Ok(self.documents.opened.get_or_init(|| self.with_embedder(documents)).clone())
    }

    /// Gives tools the documents and the graph of their names, except for what is provided already.
    pub(super) fn provide_documents(&self, resources: &mut Resources) -> Result<(), String> {
        if !resources.provides::<Documents>() {
            let documents = self.documents()?;
            resources.insert_by_request(move |context| documents.for_request(context));
        }
        if !resources.provides::<DocumentGraph>() {
            let documents = self.documents()?;
            resources.insert_by_request(move |context| documents.graph_for_request(context));
        }
        Ok(())
    }

    /// The documents that are served: those that the tools get.
    pub(in crate::cli) fn served_documents(&self, registry: &Registry) -> Result<Option<Documents>, String> {
        let provided = registry.context(self.caller()).resources().provides::<Documents>();
        provided.then(|| self.documents()).transpose()
    }

    /// Who may add documents to a server, and what becomes of them there.
    pub(super) fn with_uploads(&self, server: ServerSettings) -> ServerSettings {
        let DocumentSettings { max_documents_per_user: most, max_document_mebibytes_per_user: size, .. } =
            self.documents;
        ServerSettings {
            upload: self.documents.upload,
            upload_limits: UploadLimits::new(most, size),
            extractor: Some(self.language_model()),
            extracts: self.documents.extract,
            ..server
        }
    }

    /// Looks for documents now, if the host provides them: a command does not wait for the background task.
    pub(in crate::cli) async fn refresh_documents(&self) {
        if let Some(documents) = self.documents.opened.get() {
            documents.refresh().await;
        }
    }
}

/// Brings a file of documents to this version.
///
/// # Errors
/// When it is of a newer version, or cannot be read.
pub(in crate::cli) async fn migrate_documents(file: &Path) -> Result<(), String> {
    // What is opened is migrated; nothing has this path.
    let nothing = DocumentFilter { below: Some("\u{0}".to_owned()), ..DocumentFilter::default() };
    let listed = Documents::in_file(file).list(&nothing).await;
    listed.map(drop).map_err(|error| error.message().to_owned())
}
