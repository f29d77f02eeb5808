//! Work whose size a caller chooses, on threads that the runtime has for it.

use std::sync::LazyLock;

use tokio::task::JoinError;

use crate::user_places::UserPlaces;

/// How many schemas are compiled, and large arguments fitted or hashed, at once.
const AT_ONCE: usize = 4;
/// How many of these are of one user.
const OF_ONE_USER: usize = 2;

static PLACES: LazyLock<UserPlaces> = LazyLock::new(|| UserPlaces::new(OF_ONE_USER).among(AT_ONCE));

/// Does work of a user of a tenant in a place of its own.
pub(super) async fn do_large<T: Send + 'static>(
    user: (&str, &str),
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    PLACES.work(user, work).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        Caller, ErrorKind, Permission, Registry, ToolCall,
        guard::audit::{MemoryAudit, hash_arguments},
        user_places::UserPlace,
    };

    async fn place((tenant, user): (&str, &str)) -> UserPlace {
        PLACES.enter(tenant, user).await.unwrap()
    }

    #[tokio::test]
    async fn a37_large_arguments_of_one_user_hold_up_nobody_else() {
        let (ada, eve) = (("acme", "ada"), ("acme", "eve"));
        let held = [place(ada).await, place(ada).await];
        let mut next = Box::pin(place(ada));
        assert!(futures_util::poll!(&mut next).is_pending(), "a user has two");
        let _other = place(eve).await;
        assert!(futures_util::poll!(&mut next).is_pending());
        drop(held);
        next.await;
    }

    #[tokio::test]
    async fn a37_large_arguments_are_hashed_for_the_audit_in_such_a_place() {
        let audit = Arc::new(MemoryAudit::new(8));
        let registry = Registry::builder().without_compiled().audit(audit.clone()).build().unwrap();
        let context = registry.context(Caller::new("hashed", Permission::User));
        let user = (context.tenant(), "hashed");
        let large = json!({"text": "x".repeat(300 << 10)});
        let held = [place(user).await, place(user).await];
        let small = registry.execute(&context, ToolCall::new("no_such_tool", json!({"text": "x"}))).await;
        assert_eq!(small.result.unwrap_err().kind(), ErrorKind::ToolNotFound);
        let mut call = Box::pin(registry.execute(&context, ToolCall::new("no_such_tool", large)));
        assert!(futures_util::poll!(&mut call).is_pending());
        drop(held);
        assert_eq!(call.await.result.unwrap_err().kind(), ErrorKind::ToolNotFound);
        let hidden = json!({"text": "(secret)"});
        assert_eq!(audit.records().last().unwrap().arguments_sha256, hash_arguments(&hidden));
    }
}
