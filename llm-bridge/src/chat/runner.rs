//! Runs the calls of one answer side by side and keeps their order.

use registry_core::{ErrorKind, EventSink, Selection, ToolCall, ToolContext, ToolError, ToolOutcome};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    TurnEvent,
    limits::{Meter, Reached, Verdict},
    offer::Target,
    reader::FoundCall,
};

/// A call on its way: running, or answered already.
enum Running {
    Task(JoinHandle<ToolOutcome>),
    Answered(String),
}

/// What the calls came to: for each of the server's, the text for the model.
pub(super) struct Results {
    /// One for each call, in order; `None` for a client's.
    pub(super) texts: Vec<Option<String>>,
    /// The limit that was reached on the way.
    pub(super) reached: Option<Reached>,
}

/// Runs the server's calls among these.
pub(super) async fn run(
    calls: &[FoundCall],
    selection: &Selection,
    context: &ToolContext,
    meter: &mut Meter,
    events: &mpsc::Sender<TurnEvent>,
) -> Results {
    // A status is news, not content: when the reader is slow the newest may be dropped.
    let sender = events.clone();
    let sink: EventSink =
        std::sync::Arc::new(move |event| drop(sender.try_send(TurnEvent::CallStatus(event))));
    let context = context.clone().with_events(sink);

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
        running.push(Some(match verdict {
            Verdict::Run => {
                let mut tool_call = ToolCall::new(name, arguments)
                    .with_id(&call.id)
                    .with_origin(call.origin.clone())
                    .with_retries(1);
                tool_call.raw_argument.clone_from(&call.raw_argument);
                Running::Task(spawn(selection, &context, tool_call, events))
            }
            Verdict::Warn => {
                let text = "Error: this call has been made already with the same arguments. Use the result you have, or answer without it.";
                refuse(call, name, text, selection, &context, events).await;
                Running::Answered(text.to_owned())
            }
            Verdict::Stop(limit) => {
                reached = Some(limit);
                let text = "Error: not run, a limit was reached.";
                refuse(call, name, text, selection, &context, events).await;
                Running::Answered(text.to_owned())
            }
        }));
    }

    let mut texts = Vec::with_capacity(running.len());
    for call in running {
        texts.push(match call {
            None => None,
            Some(Running::Answered(text)) => Some(text),
            Some(Running::Task(task)) => Some(match task.await {
                Ok(outcome) => outcome.for_model(),
                // The registry catches a tool's panic; this is the runtime going down.
                Err(error) => format!("Error: the call was not finished: {error}"),
            }),
        });
    }
    Results { texts, reached }
}

/// Runs a call in a task of its own, so that a tool that blocks its thread holds up nothing else, and so that a call whose
/// client has gone away is cancelled and still leaves its record.
fn spawn(
    selection: &Selection,
    context: &ToolContext,
    call: ToolCall,
    events: &mpsc::Sender<TurnEvent>,
) -> JoinHandle<ToolOutcome> {
    let (selection, context, events) = (selection.clone(), context.clone(), events.clone());
    tokio::spawn(async move {
        let outcome = selection.execute(&context, call).await;
        // Nobody listens any more: the record is kept all the same.
        let _ = events.send(TurnEvent::CallFinished(Box::new(outcome.clone()))).await;
        outcome
    })
}

/// A call that is not run leaves its record too.
async fn refuse(
    call: &FoundCall,
    name: &str,
    text: &str,
    selection: &Selection,
    context: &ToolContext,
    events: &mpsc::Sender<TurnEvent>,
) {
    let error = ToolError::new(ErrorKind::Refused, text.trim_start_matches("Error: "));
    let tool_call =
        ToolCall::new(name, call.arguments_value()).with_id(&call.id).with_origin(call.origin.clone());
    let outcome = selection.refuse(context, tool_call, error).await;
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
