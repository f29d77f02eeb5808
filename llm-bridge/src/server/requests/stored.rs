//! Reads for a request what the store keeps of its user: a few at once, since the store has few connections that read and others need them
//! for each call, and counted like the body of a request, since it is in memory until the request is answered.

use std::sync::LazyLock;

use axum::{
    body::Bytes,
    http::header,
    response::{IntoResponse, Response},
};
use registry_core::UserPlaces;
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use crate::server::callers::identity::Identity;

/// How many are read at once.
const AT_ONCE: usize = 2;
/// How many of these are of one user.
const OF_ONE_USER: usize = 1;

static READERS: LazyLock<UserPlaces> = LazyLock::new(|| UserPlaces::new(OF_ONE_USER).among(AT_ONCE));

impl Identity {
    /// Reads something that takes so many bytes once it is there. A read has its place until it ends, also where its client is gone: so
    /// does its connection.
    ///
    /// # Errors
    /// Those of the read, and 503 where the user, or all together, have as much under way as may be.
    pub(in crate::server) async fn read<T: Send + 'static, E: Into<ApiError>>(
        &self,
        read: impl Future<Output = Result<T, E>> + Send + 'static,
        bytes: impl FnOnce(&T) -> usize + Send + 'static,
    ) -> Result<T, ApiError> {
        let identity = self.clone();
        let reading = async move {
            let read = read.await.map_err(Into::into)?;
            identity.hold(bytes(&read))?;
            Ok(read)
        };
        let failed = |_| ApiError::internal("the store could not be read; see the server's log");
        READERS.task((self.registry.tenant(), &self.caller.user), reading).await.map_err(failed)?
    }

    /// Answers with something that is read, as `shown` has it: it is written in the same place, since its values take more room than its text.
    ///
    /// # Errors
    /// The same.
    pub(in crate::server) async fn read_json<T: Send + 'static, S: Serialize, E: Into<ApiError>>(
        &self,
        read: impl Future<Output = Result<T, E>> + Send + 'static,
        shown: impl FnOnce(T) -> S + Send + 'static,
    ) -> Result<Response, ApiError> {
        let written = async move {
            let read = read.await.map_err(Into::into)?;
            let write = spawn_blocking(move || {
                // It may wait long for its client.
                serde_json::to_vec(&shown(read)).map(Vec::into_boxed_slice)
            });
            let written = write.await.map_err(|_| ApiError::internal("the server is being stopped"))?;
            written.map_err(|fault| ApiError::internal(fault.to_string()))
        };
        let body = self.read(written, |body| body.len()).await?;
        Ok(([(header::CONTENT_TYPE, "application/json")], Bytes::from(body)).into_response())
    }
}
