//! The settings of documents in a program that was built without the feature `documents`: there are none.

use std::path::Path;

use registry_core::{Registry, Resources};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use super::{Place, Settings};
use crate::{
    cli::features::missing,
    server::{Documents, ServerSettings},
};

/// No settings.
#[derive(Debug, Clone, Default)]
pub struct DocumentSettings {}

impl<'de> Deserialize<'de> for DocumentSettings {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(missing("documents")))
    }
}

impl DocumentSettings {
    pub(super) fn lay_over(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        let name = "TOOLRACK_EMBEDDINGS_MODEL";
        match variable(name).filter(|value| !value.is_empty()) {
            Some(_) => Err(format!("{name}: {}", missing("documents"))),
            None => Ok(()),
        }
    }

    pub(super) fn shown(&self) -> Value {
        Value::Null
    }
}

impl Settings {
    /// Where documents are that a program with them has added.
    pub(in crate::cli) fn document_place(&self) -> Place<'_> {
        Place::File(self.data_dir.join("documents.db"))
    }

    pub(super) fn provide_documents(&self, _: &mut Resources) -> Result<(), String> {
        Ok(())
    }

    pub(in crate::cli) fn served_documents(&self, _: &Registry) -> Result<Option<Documents>, String> {
        Ok(None)
    }

    pub(super) fn with_uploads(&self, server: ServerSettings) -> ServerSettings {
        server
    }

    pub(in crate::cli) async fn refresh_documents(&self) {}
}

/// Leaves a file of documents to a program that has them.
pub(in crate::cli) async fn migrate_documents(_: &Path) -> Result<(), String> {
    Ok(())
}
