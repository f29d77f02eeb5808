//! What the program itself provides to tools and to `#[resource]` functions.

use std::sync::Arc;

use registry_core::{DataFolder, Resources, model::Model};

use super::Settings;

impl Settings {
    /// Adds what the settings provide, except for types that are provided already: the data folder, the documents, the graph of their names and
    /// the model. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the URL of the documents' database is invalid, or the current folder is gone.
    pub(in crate::cli) fn provide(&self, mut resources: Resources) -> Result<Resources, String> {
        if !resources.provides::<DataFolder>() {
            let folder = std::path::absolute(&self.data_dir)
                .map_err(|error| format!("{}: {error}", self.data_dir.display()))?;
            resources.insert(Arc::new(DataFolder::new(folder)));
        }
        self.provide_documents(&mut resources)?;
        if !resources.provides::<Model>() {
            let model = self.language_model();
            resources.insert_by_request(move |_| model.missing().map_or_else(|| Ok(model.clone()), Err));
        }
        Ok(resources)
    }
}
