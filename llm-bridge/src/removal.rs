//! A user is removed, by the console or by a command.

use registry_core::{
    clock::{Clock, SystemClock},
    store::{RemovedUser, Store, StoreError},
};
use toolrack_remote::mcp::oauth::Connections;

/// Removes a user with all that goes along: accounts on MCP servers, which are revoked there too, what the store keeps of the user, what
/// waits for the user's answer, and the documents of the user's chats.
///
/// # Errors
/// Where any of it fails; the next removal goes on.
pub(crate) async fn remove_user<E: From<StoreError>>(
    store: &dyn Store,
    connections: Option<&Connections>,
    (tenant, id): (&str, &str),
    forget_asked: impl Future<Output = Result<usize, StoreError>>,
    forget_documents: impl Future<Output = Result<(), E>>,
) -> Result<RemovedUser, E> {
    // First, while it is known what to revoke.
    if let Some(connections) = connections {
        connections.disconnect_all(tenant, id).await?;
    }
    let removed = store.remove_user(tenant, id, SystemClock.now()).await?;
    // Where they are kept elsewhere than the users.
    forget_asked.await?;
    forget_documents.await?;
    Ok(removed)
}
