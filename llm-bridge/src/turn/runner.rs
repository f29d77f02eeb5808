//! Runs the calls of one answer side by side and keeps their order.

use std::sync::Arc;

use registry_core::{ErrorKind, EventSink, ToolCall, ToolContext, ToolError, ToolEvent, ToolOutcome};
use tokio::{sync::mpsc::error::TrySendError, task::JoinHandle};
use tokio_util::task::TaskTracker;

use toolrack_apis::{FinishedTool, ToolStatus, TurnEvent};

use super::{
    call::FoundCall,
    clock::ToolClock,
    handle::Events,
    history::Answered,
    limits::{Meter, Reached, Verdict},
    offer::{Offer, Target},
};

pub(super) use super::shorten::shorten;

/// A call on its way: running, or answered already.
enum Running {
    Task(JoinHandle<Reported>),
    Answered(Answered),
}

/// What a call comes to.
struct Reported {
    /// For the model.
    answered: Answered,
    /// The text for the user.
    message: Option<String>,
}

/// The results of the calls.
pub(super) struct Results {
    /// What the model gets: one for each call, in order; `None` for a client's.
    pub(super) answers: Vec<Option<Answered>>,
    /// The texts for the user, with the ids of their calls.
    pub(super) messages: Vec<(String, String)>,
    /// The limit that was reached on the way.
    pub(super) reached: Option<Reached>,
}

/// Runs the server's calls among these, as tasks of `tools`. The model is given so many characters of a result.
pub(super) async fn run(
    calls: &[FoundCall],
    offer: &Arc<Offer>,
    meter: &mut Meter,
    events: &Events,
    tools: &TaskTracker,
    clock: &Arc<ToolClock>,
    limit: usize,
) -> Results {
    // A status is news, not content: when the reader is slow the newest may be dropped.
    let (sender, waiting) = (events.clone(), Arc::clone(clock));
    let sink: EventSink = Arc::new(move |event| {
        let asks = event.approval.is_some();
        waiting.waits(&event.call_id, asks);
        let event = TurnEvent::Tool(progress(event)).into();
        // But nobody can answer a question that was not put.
        if let (Err(TrySendError::Full(event)), true) = (sender.try_send(event), asks) {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(event).await });
        }
    });
    let context = offer.context.clone().with_events(sink);

    let mut reached = None;
    let mut running = Vec::with_capacity(calls.len());
    for call in calls {
        let Target::Server(name) = &call.target else {
            running.push(None);
            continue;
        };
        let arguments = call.arguments_value();
        let verdict = match reached {
            Some(limit) => Verdict::Stop(limit),
            None => meter.count_call(name, &arguments),
        };
        // That there is no such tool is the better answer, and the registry's.
        let fault = call.read_arguments().err().filter(|_| offer.selection.get(name).is_some());
        running.push(Some(match (verdict, fault) {
            (Verdict::Run, Some(fault)) => {
                let text = format!("Error: the arguments are not valid JSON: {fault}. Send one JSON object.");
                refuse(call, name, ErrorKind::InvalidArguments, &text, offer, events).await;
                Running::Answered(not_run(text))
            }
            (Verdict::Run, None) => {
                let mut tool_call = ToolCall::new(name, arguments)
                    .with_id(&call.id)
                    .with_origin(call.origin.clone())
                    .with_retries(1);
                tool_call.raw_argument.clone_from(&call.raw_argument);
                Running::Task(tools.spawn(make(offer, &context, tool_call, events, clock, limit)))
            }
            (Verdict::Warn, _) => {
                let text = "Error: this call has been made already with the same arguments. Use the result you have, or answer without it.";
                refuse(call, name, ErrorKind::Refused, text, offer, events).await;
                Running::Answered(not_run(text))
            }
            (Verdict::Stop(limit), _) => {
                reached = Some(limit);
                let text = "Error: not run, a limit was reached.";
                refuse(call, name, ErrorKind::Refused, text, offer, events).await;
                Running::Answered(not_run(text))
            }
        }));
    }

    let (mut answers, mut messages) = (Vec::with_capacity(running.len()), Vec::new());
    for (call, running) in calls.iter().zip(running) {
        answers.push(match running {
            None => None,
            Some(Running::Answered(answered)) => Some(answered),
            Some(Running::Task(task)) => Some(match task.await {
                Ok(Reported { answered, message }) => {
                    messages.extend(message.map(|message| (call.id.clone(), message)));
                    answered
                }
                // The registry catches a tool's panic; this is the runtime going down.
                Err(error) => not_run(format!("Error: the call was not finished: {error}")),
            }),
        });
    }
    Results { answers, messages, reached }
}

fn not_run(text: impl Into<String>) -> Answered {
    Answered { text: text.into(), pictures: Vec::new(), is_error: true }
}

/// The calls of an answer that broke off are not run.
pub(super) async fn give_up(calls: &[FoundCall], offer: &Offer, events: &Events) {
    for call in calls {
        if let Target::Server(name) = &call.target {
            let text = "Error: not run, the answer broke off.";
            refuse(call, name, ErrorKind::Cancelled, text, offer, events).await;
        }
    }
}

/// A call as a task of its own, so that a tool that blocks its thread holds up nothing else, and so that a call whose client has
/// gone away is cancelled and still leaves its record. It returns the text for the model.
fn make(
    offer: &Arc<Offer>,
    context: &ToolContext,
    call: ToolCall,
    events: &Events,
    clock: &Arc<ToolClock>,
    limit: usize,
) -> impl Future<Output = Reported> + Send + 'static {
    let (offer, context, events) = (Arc::clone(offer), context.clone(), events.clone());
    let clock = Arc::clone(clock);
    clock.begin();
    async move {
        let outcome = offer.selection.execute(&context, call).await;
        clock.end(&outcome.call_id);
        let message = outcome.result.as_ref().ok().and_then(|result| result.message.as_deref());
        let message = message.map(str::trim).filter(|message| !message.is_empty()).map(str::to_owned);
        let (text, pictures) = offer.reported(&outcome);
        let text = offer.shortened_beside(text, limit).await;
        let answered = Answered { text, pictures, is_error: !outcome.is_success() };
        // Nobody listens any more: the record is kept all the same.
        let _ = events.send(TurnEvent::Tool(finished(&outcome)).into()).await;
        Reported { answered, message }
    }
}

fn progress(event: ToolEvent) -> ToolStatus {
    let ToolEvent { call_id: id, tool_name: name, message, progress, approval, approval_seconds, .. } = event;
    ToolStatus::Progress { id, name, message, progress, approval, approval_seconds }
}

fn finished(outcome: &ToolOutcome) -> ToolStatus {
    let reply = outcome.to_reply();
    ToolStatus::Finished(Box::new(FinishedTool {
        id: reply.call_id,
        name: reply.tool_name,
        success: reply.success,
        result: reply.result,
        error: reply.error,
        message: reply.message,
        side_effects: reply.side_effects,
        duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        approval: reply.approval,
        retry_at: reply.retry_at.map(|at| at.to_string()),
    }))
}

/// A call that is not run leaves its record too.
async fn refuse(call: &FoundCall, name: &str, kind: ErrorKind, text: &str, offer: &Offer, events: &Events) {
    let error = ToolError::new(kind, text.trim_start_matches("Error: "));
    let tool_call =
        ToolCall::new(name, call.arguments_value()).with_id(&call.id).with_origin(call.origin.clone());
    let outcome = offer.selection.refuse(&offer.context, tool_call, error).await;
    let _ = events.send(TurnEvent::Tool(finished(&outcome)).into()).await;
}
