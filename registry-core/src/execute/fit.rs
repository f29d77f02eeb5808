//! Step 3: arguments that the tool's schema accepts.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::{ledger::Ledger, permit::Permitted, turned_down::TurnedDown};
use crate::{
    context::{Origin, ToolCall, ToolContext},
    registry::Registry,
    result::{ErrorKind, ToolError},
    schema::ValidationError,
    tool::Tool,
    user_places::UserPlaces,
};

/// How many schemas are compiled, and large arguments fitted, at once.
const AT_ONCE: usize = 4;
/// How many of these are of one user.
const OF_ONE_USER: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);
static OF_USERS: LazyLock<UserPlaces> = LazyLock::new(|| UserPlaces::new(OF_ONE_USER));

/// A place for such work, which is held until the work ends: it cannot be stopped when nobody waits for it any more.
type Place = (Option<SemaphorePermit<'static>>, Option<OwnedSemaphorePermit>);

async fn place((tenant, user): (&str, &str)) -> Place {
    let own = OF_USERS.enter(tenant, user).await;
    (PLACES.acquire().await.ok(), own)
}

/// A call whose arguments were coerced and validated. From here on it owes the audit an outcome.
pub(super) struct Fitted<'a> {
    pub(super) registry: &'a Registry,
    pub(super) context: ToolContext,
    pub(super) tool: Arc<Tool>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    /// The same, where a person has changed them.
    pub(super) changed: Option<Map<String, Value>>,
    pub(super) origin: Origin,
    pub(super) retries: u8,
    /// Whether the call was interrupted and goes on.
    pub(super) interrupted: bool,
    pub(super) ledger: Ledger,
}

impl<'a> Permitted<'a> {
    pub(super) async fn fit(self) -> Result<Box<Fitted<'a>>, Box<TurnedDown<'a>>> {
        let Self { registry, context, tool, call } = self;
        // The validator is made when the tool is first called. Of a schema that came from elsewhere it may take long.
        if !tool.is_compiled() && !tool.has_checker() {
            let making = Arc::clone(&tool);
            let _first = tool.making_checker.lock().await;
            if !tool.has_checker() {
                let place = place((context.tenant(), &context.caller().user)).await;
                let make = move || {
                    let _place = place;
                    making.checker().is_ok()
                };
                // Where that fails it is made below, which says why.
                let _ = tokio::task::spawn_blocking(make).await;
            }
        }
        let checker = match tool.checker() {
            Ok(checker) => checker,
            Err(fault) => {
                tracing::error!("Cannot use tool {} ({}): {fault}", tool.name(), tool.source());
                let error = ToolError::new(
                    ErrorKind::Unavailable,
                    format!("{} cannot be used: {fault}", tool.name()),
                )
                .with_feedback(format!("The tool `{}` is not available now. Do without it.", tool.name()));
                let (context, tool) = (Cow::Owned(context), Some(tool));
                return Err(Box::new(TurnedDown { registry, context, tool, call, error }));
            }
        };
        let ToolCall { id, name, arguments, origin, raw_argument, retries, interrupted } = call;
        let fitted = match checker.is_quick(&tool.spec().input_schema, &arguments) {
            true => checker.fit(&name, &tool.spec().input_schema, arguments),
            false => {
                let user = (context.tenant(), &*context.caller().user);
                Box::pin(fit_large(user, Arc::clone(&tool), name.clone(), arguments)).await
            }
        };
        let arguments = match fitted {
            Ok(arguments) => arguments,
            Err(ValidationError { error, given }) => {
                let arguments = given;
                let call = ToolCall { id, name, arguments, origin, raw_argument, retries, interrupted };
                let (context, tool) = (Cow::Owned(context), Some(tool));
                return Err(Box::new(TurnedDown { registry, context, tool, call, error }));
            }
        };
        let ledger = Ledger::open(registry, context.running(), || {
            registry.record(&context, Some(&tool), &name, &id, origin.clone(), &arguments)
        });
        Ok(Box::new(Fitted {
            registry,
            context,
            tool,
            id,
            name,
            arguments,
            changed: None,
            origin,
            retries,
            interrupted,
            ledger,
        }))
    }
}

/// Coerces and validates arguments of a user of a tenant that do not come from the call.
pub(crate) async fn fit_arguments(
    user: (&str, &str),
    tool: &Arc<Tool>,
    name: &str,
    arguments: Value,
) -> Result<Map<String, Value>, ValidationError> {
    fit_large(user, Arc::clone(tool), name.to_owned(), arguments).await
}

/// Fits arguments that are much work on a thread for such, however many calls want that.
async fn fit_large(
    user: (&str, &str),
    tool: Arc<Tool>,
    name: String,
    arguments: Value,
) -> Result<Map<String, Value>, ValidationError> {
    let lost = || ValidationError {
        error: ToolError::new(ErrorKind::Failed, "the arguments could not be checked; see the server's log"),
        given: Value::Null,
    };
    let place = place(user).await;
    let fit = move || {
        let _place = place;
        match tool.checker() {
            Ok(checker) => checker.fit(&name, &tool.spec().input_schema, arguments),
            Err(_) => Err(lost()),
        }
    };
    tokio::task::spawn_blocking(fit).await.unwrap_or_else(|_| Err(lost()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a37_large_arguments_of_one_user_hold_up_nobody_else() {
        let (ada, eve) = (("acme", "ada"), ("acme", "eve"));
        let held = [place(ada).await, place(ada).await];
        let mut next = Box::pin(place(ada));
        assert!(futures_util::poll!(&mut next).is_pending(), "a user has two");
        let other = place(eve).await;
        assert!(other.0.is_some() && futures_util::poll!(&mut next).is_pending());
        drop(held);
        assert!(next.await.1.is_some());
    }
}
