//! `tools/call`: one call down the registry's path.

use std::time::Duration;

use registry_core::{
    Content, ErrorKind, Origin, Selection, ToolCall, ToolError, ToolOutcome, ToolResult, ToolSpec,
    guard::approval::Approval,
};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, MetaObject},
    service::RequestContext,
};
use serde_json::{Map, Value};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use toolrack_apis::names::WireNames;
use toolrack_remote::mcp::{APPROVAL_PENDING, APPROVAL_WAIT};

use super::{
    McpServer, Visitor,
    approval::{self, Answered, PATIENCE, Way},
    names, progress,
};

/// The error for the model when a person denies its call.
const REFUSED: &str = "A person has refused this call";

/// Executes the call, and asks for approval if it requires one.
pub(super) async fn run(
    server: &McpServer,
    visitor: Visitor,
    mut wanted: CallToolRequestParams,
    request: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let (state, answers) = (wanted.request_state.take(), wanted.input_responses.take());
    let way = Way::of(&request);
    let mut call = Call::new(server, &visitor, wanted, &request).await;
    if way != Way::Elsewhere {
        call.scope = match approval::scope(&visitor, server, state.as_deref()).await {
            Ok(scope) => Some(scope),
            Err(error) => {
                call.refuse(&error.message).await?;
                return Err(error);
            }
        };
    }
    let answered = match state {
        None => Answered::Not,
        Some(state) => match approval::brought(server, &visitor, &state, answers.as_ref()).await {
            Ok(answered) => answered,
            Err(error) => {
                call.refuse(&error.message).await?;
                return Err(error);
            }
        },
    };
    let mut outcome = match answered {
        Answered::No => call.refuse(REFUSED).await?,
        _ => call.make(if way == Way::Elsewhere { patience(&request) } else { Duration::ZERO }).await?,
    };
    if way != Way::Elsewhere
        && answered != Answered::PutAway
        && let Some(open) = open_approval(&visitor, &outcome).await
    {
        if way == Way::Result {
            return Ok(approval::input_required(server, &visitor, &open)?.into());
        }
        outcome = match approval::ask(&visitor, &open, &request).await? {
            Answered::Yes => call.make(Duration::ZERO).await?,
            Answered::No => call.refuse(REFUSED).await?,
            Answered::Not | Answered::PutAway => outcome,
        };
    }
    call.answer(outcome).map(Into::into)
}

/// How long a call waits for an approval from elsewhere: a client that repeats calls by itself sets the time.
fn patience(request: &RequestContext<RoleServer>) -> Duration {
    let wanted = request.meta.0.0.get(APPROVAL_WAIT).and_then(Value::as_u64);
    wanted.map_or(PATIENCE, |wanted| Duration::from_millis(wanted).min(PATIENCE))
}

/// The approval that the call waits for.
async fn open_approval(visitor: &Visitor, outcome: &ToolOutcome) -> Option<Approval> {
    let id = outcome.result.as_ref().err()?.approval()?;
    visitor.registry.approval(id).await.unwrap_or_else(|cause| {
        tracing::error!(%cause, "store_failed");
        None
    })
}

/// A call that may run twice, before and after its approval.
struct Call<'r> {
    server: &'r McpServer,
    visitor: &'r Visitor,
    request: &'r RequestContext<RoleServer>,
    selection: Selection,
    name: String,
    arguments: Value,
    /// The scope of the approval; the default if this client cannot ask its user.
    scope: Option<String>,
}

impl<'r> Call<'r> {
    async fn new(
        server: &'r McpServer,
        visitor: &'r Visitor,
        wanted: CallToolRequestParams,
        request: &'r RequestContext<RoleServer>,
    ) -> Self {
        let own_name = || names::own_name(&visitor.registry, server.settings, &wanted.name);
        let mut name = own_name();
        if name.is_none() {
            // A client that knows the tool from before may call it without a list.
            server.answered.clone().await;
            name = own_name();
        }
        let name = name.unwrap_or_else(|| wanted.name.into_owned());
        let selection = visitor.registry.select(&visitor.context);
        let arguments = Value::Object(wanted.arguments.unwrap_or_default());
        Self { server, visitor, request, selection, name, arguments, scope: None }
    }

    fn wanted(&self) -> ToolCall {
        ToolCall::new(&self.name, self.arguments.clone()).with_origin(Origin::Mcp)
    }

    async fn make(&self, approval_wait: Duration) -> Result<ToolOutcome, ErrorData> {
        let call = self.wanted();
        // A disconnected client cancels the request.
        let cancellation = self.request.ct.child_token();
        let _cancel = cancellation.clone().drop_guard();
        let registry = self.visitor.registry.clone();
        let context = self.visitor.context.clone();
        let mut context = context.with_approval_wait(approval_wait).with_cancellation(cancellation.clone());
        if let Some(scope) = &self.scope {
            context = context.with_approval_scope(scope.as_str());
        }
        let over = CancellationToken::new();
        let forwarding = self.request.meta.get_progress_token().map(|token| {
            let (events, heard) = progress::channel();
            context = context.clone().with_events(events);
            tokio::spawn(progress::forward(heard, self.request.peer.clone(), token, over.clone()))
        });
        // In a tracked task, so that the call is audited before the program ends.
        let mut running = self.server.calls.spawn(async move { registry.execute(&context, call).await });
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = self.server.closing.cancelled() => {
                cancellation.cancel();
                running.await
            }
        };
        // No notification may follow the result.
        over.cancel();
        if let Some(forwarding) = forwarding {
            drop(forwarding.await);
        }
        outcome.map_err(|fault| unfinished(&fault))
    }

    /// Refuses the call before it runs. It is audited like any other.
    async fn refuse(&self, why: &str) -> Result<ToolOutcome, ErrorData> {
        let error = ToolError::new(ErrorKind::Refused, why);
        let (selection, context, call) =
            (self.selection.clone(), self.visitor.context.clone(), self.wanted());
        let refusing = self.server.calls.spawn(async move { selection.refuse(&context, call, error).await });
        refusing.await.map_err(|fault| unfinished(&fault))
    }

    fn names(&self) -> WireNames {
        names::names(&self.visitor.registry, self.server.settings)
    }

    /// The outcome in the protocol's form. Errors that a model can act on are results; an unknown tool is an error.
    fn answer(&self, outcome: ToolOutcome) -> Result<CallToolResult, ErrorData> {
        let reported = outcome.for_model();
        let mut result = match outcome.result {
            Err(error) => {
                let names = error.nearest().iter().chain([&outcome.tool_name]).map(String::as_str);
                if error.kind() == ErrorKind::ToolNotFound {
                    let message = self.names().in_message(error.feedback().to_owned(), names);
                    return Err(ErrorData::invalid_params(message, None));
                }
                let message = self.names().in_message(reported, names);
                let mut answer = CallToolResult::error(vec![ContentBlock::text(message)]);
                let pending = error.approval().map(|id| (APPROVAL_PENDING.to_owned(), id.into()));
                answer.meta = pending.map(|pending| MetaObject(Map::from_iter([pending])));
                return Ok(answer);
            }
            Ok(result) => result,
        };
        if !result.success {
            return Ok(CallToolResult::error(vec![ContentBlock::text(reported)]));
        }
        let tool = self.selection.get(&outcome.tool_name);
        if tool.is_some_and(|tool| tool.is_search()) {
            names::rename_found(&mut result.value, &self.names());
        }
        let mut answer = CallToolResult::success(blocks(&result));
        answer.structured_content = tool.and_then(|tool| structured(tool.spec(), &result));
        Ok(answer)
    }
}

fn unfinished(fault: &JoinError) -> ErrorData {
    ErrorData::internal_error(format!("the call was not finished: {fault}"), None)
}

/// The value, if the tool has an output schema.
fn structured(spec: &ToolSpec, result: &ToolResult) -> Option<Value> {
    // Only a schema of an object is listed, and clients validate against it.
    let listed = spec.output_schema.get("type").and_then(Value::as_str) == Some("object");
    listed.then(|| result.value.clone()).filter(Value::is_object)
}

/// The value as text, for clients without structured content, and the tool's other content.
fn blocks(result: &ToolResult) -> Vec<ContentBlock> {
    let plain = ToolResult { content: Vec::new(), ..result.clone() };
    let only_content = result.value.is_null() && result.message.is_none() && !result.content.is_empty();
    let text = (!only_content).then(|| ContentBlock::text(plain.for_model()));
    text.into_iter().chain(result.content.iter().map(block)).collect()
}

/// A content block; as text if the protocol has none, such as for a document without a URI.
fn block(content: &Content) -> ContentBlock {
    let block = serde_json::to_value(content).and_then(serde_json::from_value);
    block.unwrap_or_else(|fault| {
        tracing::warn!(%fault, "content_unknown");
        ContentBlock::text(content.for_model())
    })
}
