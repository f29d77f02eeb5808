//! `toolrack user erase`: all that is kept of a person.

use super::{
    Settings, audit, connections,
    documents::{erase_of_chats, erase_uploads},
    out::{count, tell},
    store::Stores,
};

/// Erases a user, and says what that was. False if there was nothing.
///
/// # Errors
/// When a store fails. What was erased by then stays erased, and another call goes on.
pub(super) async fn user(
    settings: &Settings,
    stores: &Stores,
    tenant: &str,
    user: &str,
) -> Result<bool, String> {
    // While what opens them is still known.
    let disconnected = connections::of(settings, stores)?.disconnect_all(tenant, user).await?;
    // First, so that running servers take no more calls of the user.
    let erased = stores.sql.erase_user(tenant, user).await?;
    let uploaded =
        erase_uploads(settings, tenant, user).await? + erase_of_chats(settings, tenant, user).await?;
    let records = audit::erase(settings, &stores.sql, tenant, user).await?;
    if erased.is_nothing() && uploaded == 0 && records == 0 && disconnected == 0 {
        return Ok(false);
    }
    if !erased.was_known {
        tell(format_args!("{user} is no stored user"));
    }
    let parts = [
        count(erased.keys, "key"),
        count(erased.sessions, "session"),
        count(erased.chats, "chat"),
        count(disconnected + erased.connections, "connection"),
        count(erased.responses, "response"),
        count(erased.transcripts, "transcript"),
        count(erased.files, "file"),
        count(uploaded, "document"),
        format!("{} that tools kept", count(erased.values, "value")),
        count(erased.jobs, "scheduled call"),
        count(erased.approvals, "approval"),
    ];
    tell(format_args!("erased of {user}: {}", parts.join(", ")));
    tell(format_args!(
        "in the audit, {} of {user} kept only that and how the call was made; `toolrack audit verify` takes them as whole",
        count(records, "record")
    ));
    Ok(true)
}
