//! `tools/call`: one call down the registry's path.

use std::{convert::Infallible, sync::Arc, time::Duration};

use parking_lot::Mutex;
use registry_core::{
    Content, ErrorKind, EventSink, Origin, PendingQuestion, Selection, Tool, ToolCall, ToolError, ToolEvent,
    ToolOutcome, ToolResult,
    guard::approval::Approval,
    random_id,
    trace::{Trace, TraceParent},
};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputResponses, MetaObject,
        ProgressToken,
    },
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinHandle},
};
use tokio_util::sync::CancellationToken;
use toolrack_apis::names::WireNames;
use toolrack_remote::mcp::{APPROVAL_PENDING, APPROVAL_WAIT};

use super::{
    McpServer, Visitor,
    approval::{self, PATIENCE, Way},
    authorization, flow, names, progress, question,
    round_trip::{self, Answered},
};
use crate::definition::promises_results;

/// How many questions of a call a client may be unable to show.
const MAX_UNSHOWN: usize = 8;
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
    let was_asked = authorization::was_asked(answers.as_ref());
    let way = Way::of(&request);
    let mut call = Call::new(server, &visitor, wanted, &request, way).await;
    let brought = match state {
        None => Ok((None, Answered::Go)),
        Some(state) => brought(&visitor, &state, answers.as_ref()).await,
    };
    let (asked, answered) = match brought {
        Ok(brought) => brought,
        Err(error) => {
            call.refuse(&error.message).await?;
            return Err(error);
        }
    };
    let note = match (&answered, &asked) {
        (Answered::Late, _) => Some("The answer came too late, so it is asked again."),
        (Answered::Unfit(fault), Some(asked)) => {
            let again = round_trip::input_required(asked, Some(fault));
            return again.map(Into::into).map_err(|fault| ErrorData::internal_error(fault, None));
        }
        _ => None,
    };
    if way != Way::Elsewhere {
        call.scope = Some(match asked {
            Some(asked) => asked.scope,
            None => random_id().map_err(|fault| ErrorData::internal_error(fault.to_string(), None))?,
        });
    }
    let mut outcome = match answered {
        Answered::Denied => call.refuse(REFUSED).await?,
        _ => call.make(if way == Way::Elsewhere { patience(&request) } else { Duration::ZERO }).await?,
    };
    match way {
        Way::Result if answered != Answered::PutAway => {
            for _ in 0..MAX_UNSHOWN {
                let Some(open) = round_trip::open(&visitor, &outcome).await else { break };
                match (round_trip::input_required(&open, note), &open.question) {
                    (Ok(asking), _) => return Ok(asking.into()),
                    (Err(fault), None) => return Err(ErrorData::internal_error(fault, None)),
                    // The tool goes on without the answer, or asks something else.
                    (Err(reason), Some(_)) => question::decline(&visitor, &open.id, Some(reason)).await,
                }
                outcome = call.make(Duration::ZERO).await?;
            }
        }
        Way::Request => {
            let open = round_trip::open(&visitor, &outcome).await;
            if let Some(open) = open.filter(|open| open.question.is_none()) {
                outcome = match call.waiting(approval::ask(&visitor, &open, &request)).await? {
                    Answered::Denied => call.refuse(REFUSED).await?,
                    Answered::PutAway => outcome,
                    _ => call.make(Duration::ZERO).await?,
                };
            }
        }
        _ => {}
    }
    match authorization::ask(&outcome, &request).filter(|_| !was_asked) {
        Some(asking) => asking,
        None => call.answer(outcome).map(Into::into),
    }
}

/// The approval or question of a repeated call, and its answer.
async fn brought(
    visitor: &Visitor,
    state: &str,
    answers: Option<&InputResponses>,
) -> Result<(Option<Approval>, Answered), ErrorData> {
    let asked = round_trip::of_state(visitor, state).await?;
    let answered = round_trip::answer(visitor, &asked, answers).await?;
    Ok((Some(asked), answered))
}

/// How long a call waits for an approval from elsewhere: a client that repeats calls by itself sets the time.
fn patience(request: &RequestContext<RoleServer>) -> Duration {
    let wanted = request.meta.0.0.get(APPROVAL_WAIT).and_then(Value::as_u64);
    wanted.map_or(PATIENCE, |wanted| Duration::from_millis(wanted).min(PATIENCE))
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
    /// How the client's user can be asked.
    way: Way,
    /// What progress the client was told of last.
    told: Mutex<f64>,
}

impl<'r> Call<'r> {
    async fn new(
        server: &'r McpServer,
        visitor: &'r Visitor,
        wanted: CallToolRequestParams,
        request: &'r RequestContext<RoleServer>,
        way: Way,
    ) -> Self {
        let own_name = || names::own_name(&visitor.registry, &server.settings, &wanted.name);
        let mut name = own_name();
        if name.is_none() {
            // A client that knows the tool from before may call it without a list.
            server.answered.clone().await;
            name = own_name();
        }
        let name = name.unwrap_or_else(|| wanted.name.into_owned());
        let selection = visitor.registry.select(&visitor.context);
        let mut arguments = wanted.arguments.unwrap_or_default();
        if let Some(tool) = selection.get(&name) {
            arguments.retain(|name, _| !is_added(name, &tool.spec().input_schema));
        }
        let (arguments, told) = (Value::Object(arguments), Mutex::default());
        Self { server, visitor, request, selection, name, arguments, scope: None, way, told }
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
        let mut before = self.server.read.before(self.visitor, &self.request.meta.0.0);
        let takeover = self.server.takeover.as_ref().zip(self.visitor.session.as_deref());
        if let Some((takeover, session)) = takeover {
            before.read.add(&takeover.read_in(session));
        }
        let context = match place_of(&self.request.meta.0.0) {
            Some(place) => {
                let trace = context.trace().map_or_else(|| Trace::new(place, None), |trace| trace.at(place));
                let state = self.request.meta.0.0.get(TraceParent::STATE).and_then(Value::as_str);
                context.with_trace(trace.with_state(state))
            }
            None => context,
        };
        let mut context = context
            .with_flow(before)
            .with_approval_wait(approval_wait)
            .with_cancellation(cancellation.clone());
        if let Some(scope) = &self.scope {
            context = context.with_approval_scope(scope.as_str());
        }
        let over = CancellationToken::new();
        let mut sink: Option<EventSink> = None;
        let forwarding = self.request.meta.get_progress_token().map(|token| {
            let (events, heard) = progress::channel();
            sink = Some(events);
            self.tell(heard, token, &over)
        });
        if self.way == Way::Result {
            context = context.with_questions().with_question_wait(Duration::ZERO);
        }
        let asked = (self.way == Way::Request).then(|| {
            let (asks, asked) = mpsc::unbounded_channel();
            let progress = sink.take();
            // A tool asks so many questions at most, so the channel is bounded.
            sink = Some(Arc::new(move |event: ToolEvent| {
                if let Some(question) = &event.question {
                    let _ = asks.send(PendingQuestion::clone(question));
                }
                if let Some(progress) = &progress {
                    progress(event);
                }
            }));
            context = context.clone().with_questions().with_question_wait(question::PATIENCE);
            asked
        });
        if let Some(sink) = sink {
            context = context.with_events(self.noting(sink));
        }
        // In a tracked task, so that the call is audited before the program ends.
        let mut running = self.server.calls.spawn(async move { registry.execute(&context, call).await });
        // Forms go to the stream of the request in whose task they are asked. None may follow the result.
        let asking = async {
            if let Some(asked) = asked {
                question::ask_all(asked, self.visitor, &self.request.peer).await;
            }
            std::future::pending::<Infallible>().await
        };
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = self.server.closing.cancelled() => {
                cancellation.cancel();
                running.await
            }
            never = asking => match never {},
        };
        over.cancel();
        self.has_told(forwarding).await;
        let outcome = outcome.map_err(|fault| unfinished(&fault))?;
        self.server.read.note(self.visitor, outcome.reads, &outcome.tool_name);
        if let Some((takeover, session)) = takeover {
            takeover.has_read(session, outcome.reads, &outcome.tool_name).await;
        }
        Ok(outcome)
    }

    /// The sink of a tool that tells the client something before its call has ended: from then on the session has read it.
    fn noting(&self, sink: EventSink) -> EventSink {
        let reads = self.selection.get(&self.name).map(|tool| tool.reads()).unwrap_or_default();
        let (read, visitor, name) = (self.server.read.clone(), self.visitor.clone(), self.name.clone());
        Arc::new(move |event| {
            read.note(&visitor, reads, &name);
            sink(event);
        })
    }

    /// Waits for a person, of which the client is told from time to time.
    async fn waiting<T>(&self, answer: impl Future<Output = T>) -> T {
        let over = CancellationToken::new();
        let (_events, heard) = progress::channel();
        let telling = self.request.meta.get_progress_token().map(|token| self.tell(heard, token, &over));
        let answer = answer.await;
        over.cancel();
        self.has_told(telling).await;
        answer
    }

    fn tell(
        &self,
        heard: mpsc::Receiver<ToolEvent>,
        token: ProgressToken,
        over: &CancellationToken,
    ) -> JoinHandle<f64> {
        let (peer, told) = (self.request.peer.clone(), *self.told.lock());
        tokio::spawn(progress::forward(heard, peer, token, over.clone(), told))
    }

    async fn has_told(&self, telling: Option<JoinHandle<f64>>) {
        if let Some(telling) = telling
            && let Ok(told) = telling.await
        {
            *self.told.lock() = told;
        }
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
        names::names(&self.visitor.registry, &self.server.settings)
    }

    /// The outcome in the protocol's form. Errors that a model can act on are results; an unknown tool is an error.
    fn answer(&self, outcome: ToolOutcome) -> Result<CallToolResult, ErrorData> {
        let (reported, reads, change) = (outcome.for_model(), outcome.reads, outcome.change_for_model());
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
                flow::tell(reads, &mut answer.meta);
                return Ok(answer);
            }
            Ok(result) => result,
        };
        let tool = self.selection.get(&outcome.tool_name);
        if tool.is_some_and(|tool| tool.is_search()) {
            names::rename_found(&mut result.value, &self.names());
        }
        let shown = change.map(ContentBlock::text).into_iter().chain(blocks(&result)).collect();
        let mut answer = match result.success {
            true => CallToolResult::success(shown),
            false => CallToolResult::error(shown),
        };
        answer.structured_content = tool.and_then(|tool| structured(tool, &result));
        flow::tell(reads, &mut answer.meta);
        Ok(answer)
    }
}

/// The call that the parameters of a request mean. Small models write the arguments as a text.
///
/// # Errors
/// What is wrong with them.
pub(super) fn wanted(params: &mut Value) -> Result<CallToolRequestParams, String> {
    let object = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
    match params.get_mut("arguments") {
        Some(arguments) if arguments.is_string() => {
            let read = arguments.as_str().and_then(object);
            *arguments =
                read.ok_or("the parameters are not those of tools/call: `arguments` has to be an object")?;
        }
        Some(arguments) if !arguments.is_object() && !arguments.is_null() => {
            return Err(
                "the parameters are not those of tools/call: `arguments` has to be an object".to_owned()
            );
        }
        _ => {}
    }
    let read = Deserialize::deserialize(&*params);
    read.map_err(|fault| format!("the parameters are not those of tools/call: {fault}"))
}

/// What a widespread client adds to the arguments of every tool, which no model can leave out.
const ADDED: [&str; 4] = ["toolCallId", "sessionId", "action", "chatInput"];

/// Whether an argument is such, and the tool takes none of its name.
fn is_added(name: &str, schema: &Value) -> bool {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let is_known = schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
    is_closed && !is_known && ADDED.contains(&name) && schema.get("patternProperties").is_none()
}

/// Where the client's request is in a trace, if its `_meta` says so.
fn place_of(meta: &Map<String, Value>) -> Option<TraceParent> {
    meta.get(TraceParent::HEADER)?.as_str()?.parse().ok()
}

fn unfinished(fault: &JoinError) -> ErrorData {
    ErrorData::internal_error(format!("the call was not finished: {fault}"), None)
}

/// The value, if the tool has an output schema; or if it is an object of another server, which had one or not.
fn structured(tool: &Tool, result: &ToolResult) -> Option<Value> {
    if !promises_results(tool) {
        return result.structured();
    }
    // Only a schema of an object is listed, and clients validate against it.
    let listed = tool.spec().output_schema.get("type").and_then(Value::as_str) == Some("object");
    if listed { result.structured() } else { None }
}

/// The value as text, for clients without structured content, and the tool's other content.
fn blocks(result: &ToolResult) -> Vec<ContentBlock> {
    let plain = ToolResult { content: Vec::new(), ..result.clone() };
    let only_content = result.value.is_null() && result.message.is_none() && !result.content.is_empty();
    let text = (!only_content).then(|| ContentBlock::text(plain.for_model()));
    text.into_iter().chain(result.content.iter().map(block)).collect()
}

/// A content block; as text if the protocol has none, such as for a table, or for a document without a URI.
fn block(content: &Content) -> ContentBlock {
    if matches!(content, Content::Table(_) | Content::Markdown { .. }) {
        return ContentBlock::text(content.for_model());
    }
    let block = serde_json::to_value(content).and_then(serde_json::from_value);
    block.unwrap_or_else(|fault| {
        tracing::warn!(%fault, "content_unknown");
        ContentBlock::text(content.for_model())
    })
}
