//! Runs the calls of one answer side by side and keeps their order.

use std::sync::Arc;

use registry_core::{ErrorKind, EventSink, ToolCall, ToolContext, ToolError};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
};
use tokio_util::task::TaskTracker;

use super::{
    TurnEvent,
    limits::{Meter, Reached, Verdict},
    offer::{Offer, Target},
    reader::FoundCall,
};

/// A call on its way: running, or answered already.
enum Running {
    Task(JoinHandle<Reported>),
    Answered(String),
}

/// What a call comes to.
struct Reported {
    /// The text for the model.
    text: String,
    /// The text for the user.
    message: Option<String>,
}

/// The results of the calls.
pub(super) struct Results {
    /// The texts for the model: one for each call, in order; `None` for a client's.
    pub(super) texts: Vec<Option<String>>,
    /// The texts for the user, with the ids of their calls.
    pub(super) messages: Vec<(String, String)>,
    /// The limit that was reached on the way.
    pub(super) reached: Option<Reached>,
}

/// Runs the server's calls among these, as tasks of `tools`.
pub(super) async fn run(
    calls: &[FoundCall],
    offer: &Arc<Offer>,
    meter: &mut Meter,
    events: &mpsc::Sender<TurnEvent>,
    tools: &TaskTracker,
) -> Results {
    // A status is news, not content: when the reader is slow the newest may be dropped.
    let sender = events.clone();
    let sink: EventSink = Arc::new(move |event| {
        let asks = event.approval.is_some();
        let event = TurnEvent::CallStatus(event);
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
                Running::Answered(text)
            }
            (Verdict::Run, None) => {
                let mut tool_call = ToolCall::new(name, arguments)
                    .with_id(&call.id)
                    .with_origin(call.origin.clone())
                    .with_retries(1);
                tool_call.raw_argument.clone_from(&call.raw_argument);
                Running::Task(tools.spawn(make(offer, &context, tool_call, events)))
            }
            (Verdict::Warn, _) => {
                let text = "Error: this call has been made already with the same arguments. Use the result you have, or answer without it.";
                refuse(call, name, ErrorKind::Refused, text, offer, events).await;
                Running::Answered(text.to_owned())
            }
            (Verdict::Stop(limit), _) => {
                reached = Some(limit);
                let text = "Error: not run, a limit was reached.";
                refuse(call, name, ErrorKind::Refused, text, offer, events).await;
                Running::Answered(text.to_owned())
            }
        }));
    }

    let (mut texts, mut messages) = (Vec::with_capacity(running.len()), Vec::new());
    for (call, running) in calls.iter().zip(running) {
        texts.push(match running {
            None => None,
            Some(Running::Answered(text)) => Some(text),
            Some(Running::Task(task)) => Some(match task.await {
                Ok(Reported { text, message }) => {
                    messages.extend(message.map(|message| (call.id.clone(), message)));
                    text
                }
                // The registry catches a tool's panic; this is the runtime going down.
                Err(error) => format!("Error: the call was not finished: {error}"),
            }),
        });
    }
    Results { texts, messages, reached }
}

/// The calls of an answer that broke off are not run.
pub(super) async fn give_up(calls: &[FoundCall], offer: &Offer, events: &mpsc::Sender<TurnEvent>) {
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
    events: &mpsc::Sender<TurnEvent>,
) -> impl Future<Output = Reported> + Send + 'static {
    let (offer, context, events) = (Arc::clone(offer), context.clone(), events.clone());
    async move {
        let outcome = offer.selection.execute(&context, call).await;
        let message = outcome.result.as_ref().ok().and_then(|result| result.message.as_deref());
        let message = message.map(str::trim).filter(|message| !message.is_empty()).map(str::to_owned);
        let reported = Reported { text: offer.reported(&outcome), message };
        // Nobody listens any more: the record is kept all the same.
        let _ = events.send(TurnEvent::CallFinished(Box::new(outcome))).await;
        reported
    }
}

/// A call that is not run leaves its record too.
async fn refuse(
    call: &FoundCall,
    name: &str,
    kind: ErrorKind,
    text: &str,
    offer: &Offer,
    events: &mpsc::Sender<TurnEvent>,
) {
    let error = ToolError::new(kind, text.trim_start_matches("Error: "));
    let tool_call =
        ToolCall::new(name, call.arguments_value()).with_id(&call.id).with_origin(call.origin.clone());
    let outcome = offer.selection.refuse(&offer.context, tool_call, error).await;
    let _ = events.send(TurnEvent::CallFinished(Box::new(outcome))).await;
}

/// A text of at most so many characters, with a word about what is missing.
pub(super) fn shorten(text: String, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text,
        Some((end, _)) => {
            let left_out = text.chars().count() - limit;
            format!("{}\n[… {left_out} more characters were left out]", text.get(..end).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn a_long_result_says_what_is_missing() {
        assert_eq!(shorten("äöü".into(), 3), "äöü");
        assert_eq!(shorten("äöüß!".into(), 3), "äöü\n[… 2 more characters were left out]");
    }
}
