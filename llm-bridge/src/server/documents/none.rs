//! Without the feature `documents`: there are none, and whoever asks for them is told so.

mod upload;

use axum::{extract::State, http::Method};
use tokio_util::sync::CancellationToken;

use super::{
    App, ServerSettings, callers::identity::Identity, openapi::Operation, requests::api_error::ApiError,
    routes::Routes,
};
use crate::turn::Backend;

pub use upload::{Upload, UploadLimits};

/// The documents that tools search; here there are none.
#[derive(Debug, Clone)]
pub enum Documents {}

#[derive(Debug, Clone)]
pub(super) struct DocumentAccess;

impl DocumentAccess {
    pub(super) fn new(_: &Backend, _: &ServerSettings, _: &CancellationToken) -> Self {
        Self
    }

    pub(super) async fn learn_of_chat(&self, _: &Identity, _: &str) {}

    pub(super) async fn forget_chat(&self, _: &Identity, _: &str) {}

    pub(super) async fn forget_chats_of(&self, _: &Identity, _: &str) {}

    fn refused(&self) -> ApiError {
        ApiError::not_found(
            "no_documents",
            "this server was built without the feature `documents`, and keeps none",
        )
    }
}

pub(super) fn routes() -> Routes {
    let operation = |method, id: &'static str, about: &'static str| {
        Operation::new(method, "Documents", id, about)
            .refuses(404, "This server was built without documents (`no_documents`).")
    };
    let add = operation(Method::POST, "add_document", "Adds a document")
        .required_query("name", "The name of the file.")
        .takes_bytes();
    let search = operation(Method::GET, "search_documents", "Searches the documents as the tools do");
    Routes::new()
        .add("/api/documents/search", refuse, search)
        .add(
            "/api/documents",
            refuse,
            operation(Method::GET, "list_documents", "The documents that tools search"),
        )
        .add("/api/documents", refuse, add)
        .add("/api/documents", refuse, operation(Method::DELETE, "remove_documents", "Removes a document"))
}

async fn refuse(State(app): State<App>) -> ApiError {
    app.documents.refused()
}
