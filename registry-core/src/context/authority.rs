//! Whether a caller still has its rights, asked anew while a call is on its way.

use async_trait::async_trait;

use std::{sync::Arc, time::Duration};

use super::{Caller, ToolContext};
use crate::{
    result::{ErrorKind, ToolError},
    store::{StoreError, StoreResult},
};

/// How long the answer may take. The call is not made without it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Knows what the caller of a [`ToolContext`] may do by now.
///
/// A request can be under way for minutes: a chat makes one call after another, and a call waits for a person. A host where users and
/// their keys change meanwhile gives one of these along ([`ToolContext::with_authority`]). Every call asks it twice, before anything else
/// is looked at and right before the tool's code runs, so it had better remember its answer for a moment.
#[async_trait]
pub trait CallerAuthority: Send + Sync {
    /// The caller as of now; `None` where there is nobody any more, as with a key that was revoked.
    ///
    /// It can only narrow what the request may do: what the caller has gained since is the next request's. Where it fails the call is
    /// not made.
    async fn caller(&self) -> StoreResult<Option<Caller>>;
}

impl ToolContext {
    /// Takes away from the caller what it may not do any more.
    ///
    /// # Errors
    /// Why the call cannot be made, where there is no such caller any more or nobody can say.
    pub(crate) async fn revalidate(&mut self) -> Result<(), ToolError> {
        let Some(authority) = self.authority().map(Arc::clone) else { return Ok(()) };
        let asked = tokio::select! {
            biased;
            asked = tokio::time::timeout(PATIENCE, authority.caller()) => asked,
            () = self.cancelled() => return Err(ToolError::cancelled()),
        };
        let user = &self.caller().user;
        match asked.unwrap_or_else(|_| Err(no_answer())) {
            Ok(Some(now)) => {
                self.narrow_caller(&now);
                Ok(())
            }
            Ok(None) => Err(ToolError::new(
                ErrorKind::PermissionDenied,
                format!("{user} may not call anything any more"),
            )
            .with_feedback("You may not use tools here any more. Do without them.")),
            Err(cause) => {
                tracing::error!(user, %cause, "caller_authority_failed");
                let message = format!("what {user} may do now could not be found out");
                Err(ToolError::store_failed(&cause, message)
                    .with_feedback("Tools cannot be used now. Do without them."))
            }
        }
    }
}

fn no_answer() -> StoreError {
    StoreError::unavailable(format!("no answer within {} s", PATIENCE.as_secs()))
}
