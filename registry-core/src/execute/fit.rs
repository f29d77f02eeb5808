//! Step 3: arguments that the tool's schema accepts.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value};

use super::{
    large::do_large,
    ledger::Ledger,
    permit::Permitted,
    record::{Audit, AuditedArguments},
    turned_down::TurnedDown,
};
use crate::{
    context::{Origin, ToolCall, ToolContext},
    registry::Registry,
    result::{ErrorKind, ToolError},
    schema::ValidationError,
    tool::Tool,
};

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
                let user = (context.tenant(), &*context.caller().user);
                // Where that fails it is made below, which says why.
                let _ = do_large(user, move || making.checker().is_ok()).await;
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
        let audit = registry.audit_of_calls();
        let fitted = match checker.is_quick(&tool.spec().input_schema, &arguments) {
            true => fit(&tool, &name, arguments, audit),
            false => {
                let user = (context.tenant(), &*context.caller().user);
                Box::pin(fit_large(user, Arc::clone(&tool), name.clone(), arguments, audit)).await
            }
        };
        let (arguments, audited) = match fitted {
            Ok(fitted) => fitted,
            Err(ValidationError { error, given }) => {
                let arguments = given;
                let call = ToolCall { id, name, arguments, origin, raw_argument, retries, interrupted };
                let (context, tool) = (Cow::Owned(context), Some(tool));
                return Err(Box::new(TurnedDown { registry, context, tool, call, error }));
            }
        };
        let record = audited
            .map(|audited| registry.record(&context, Some(&tool), &name, &id, origin.clone(), audited));
        let ledger = Ledger::open(registry, context.running(), record);
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
    let fitted = fit_large(user, Arc::clone(tool), name.to_owned(), arguments, Audit::Nothing).await;
    fitted.map(|(arguments, _)| arguments)
}

/// Fitted arguments, and what the audit has of them.
type FittedArguments = (Map<String, Value>, Option<AuditedArguments>);

fn fit(tool: &Tool, name: &str, arguments: Value, audit: Audit) -> Result<FittedArguments, ValidationError> {
    let checker = tool.checker().map_err(|_| lost())?;
    let arguments = checker.fit(name, &tool.spec().input_schema, arguments)?;
    let audited = AuditedArguments::of(&arguments, Some(tool), audit);
    Ok((arguments, audited))
}

/// Fits arguments that are much work on a thread for such, however many calls want that.
async fn fit_large(
    user: (&str, &str),
    tool: Arc<Tool>,
    name: String,
    arguments: Value,
    audit: Audit,
) -> Result<FittedArguments, ValidationError> {
    let fitted = do_large(user, move || fit(&tool, &name, arguments, audit)).await;
    fitted.unwrap_or_else(|_| Err(lost()))
}

fn lost() -> ValidationError {
    let error = ToolError::new(ErrorKind::Failed, "the arguments could not be checked; see the server's log");
    ValidationError { error, given: Value::Null }
}
