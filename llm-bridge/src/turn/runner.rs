//! Runs the calls of one answer side by side and keeps their order.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use registry_core::{
    Content, ErrorKind, EventSink, PendingQuestion, ToolCall, ToolContext, ToolError, ToolEvent, ToolOutcome,
    ToolResult,
    flow::{HasRead, Reads, TurnFlow},
    guard::approval::Question,
    model::ModelUsage,
};
use serde_json::Value;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
};
use tokio_util::task::TaskTracker;

use toolrack_apis::{AskedQuestion, FinishedTool, ToolStatus, TurnEvent, Usage};

use super::{
    call::FoundCall,
    clock::ToolClock,
    handle::Events,
    history::Answered,
    limits::{Meter, Reached, Verdict},
    offer::{Offer, Target},
    parts,
};

pub(super) use super::shorten::shorten;

/// A call of an answer.
enum Call {
    Task(JoinHandle<()>),
    /// It is not run.
    Answered,
    Clients,
}

/// What a call comes to.
#[derive(Debug)]
pub(super) struct Reported {
    /// For the model.
    pub(super) answered: Answered,
    /// For the person.
    pub(super) told: Told,
    /// The tool, and what its result holds.
    pub(super) name: String,
    pub(super) reads: Reads,
    /// What the tool has used of the model.
    usage: ModelUsage,
}

/// What the calls of an answer have come to, by their places; also where the one who has waited for them does so no longer.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcomes(Arc<Mutex<BTreeMap<usize, Reported>>>);

impl Outcomes {
    fn add(&self, place: usize, reported: Reported) {
        self.0.lock().insert(place, reported);
    }

    pub(super) fn take(&self) -> BTreeMap<usize, Reported> {
        std::mem::take(&mut self.0.lock())
    }
}

/// What the person gets of a call.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Which call.
    pub(super) id: String,
    /// The text of a result that ends the turn.
    pub(super) ending: Option<String>,
    /// A word beside the answer.
    pub(super) message: Option<String>,
    /// What the result shows. Of one that came as a stream it has been shown already.
    pub(super) parts: Vec<Content>,
}

/// The results of the calls.
pub(super) struct Results {
    /// What the model gets: one for each call, in order; `None` for a client's.
    pub(super) answers: Vec<Option<Answered>>,
    /// What the person gets.
    pub(super) told: Vec<Told>,
    /// What the tools have used of the model.
    pub(super) usage: Usage,
    /// The limit that was reached on the way.
    pub(super) reached: Option<Reached>,
    /// What the results hold.
    pub(super) read: HasRead,
}

/// The calls of an answer that run.
pub(super) struct Running {
    calls: Vec<Call>,
    outcomes: Outcomes,
    reached: Option<Reached>,
}

/// The parts of results that come as streams, with the ids of their calls. What waits here is no more than the results have.
pub(super) type Parts = mpsc::UnboundedReceiver<(String, Content)>;

/// The turn that calls run in.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) offer: &'a Arc<Offer>,
    pub(super) events: &'a Events,
    pub(super) clock: &'a Arc<ToolClock>,
    pub(super) outcomes: &'a Outcomes,
    /// How many characters of a result the model is given.
    pub(super) limit: usize,
}

/// Runs the server's calls among these, as tasks of `tools`. `flows` are what each is judged by.
pub(super) async fn begin(
    calls: &[FoundCall],
    flows: &[Arc<TurnFlow>],
    about: About<'_>,
    meter: &mut Meter,
    tools: &TaskTracker,
) -> (Running, Parts) {
    let About { offer, events, clock, outcomes, .. } = about;
    let (show, parts) = mpsc::unbounded_channel();
    // A status is news, not content: when the reader is slow the newest may be dropped.
    let (sender, waiting) = (events.clone(), Arc::clone(clock));
    let sink: EventSink = Arc::new(move |event| {
        if let Some(part) = event.part {
            // Nobody receives it any more where the turn is over.
            let _ = show.send((event.call_id, part));
            return;
        }
        let asks = event.approval.is_some() || event.question.as_ref().is_some_and(|asked| asked.waits);
        let is_question = event.question.is_some();
        waiting.waits(&event.call_id, asks);
        let event = TurnEvent::Tool(progress(event)).into();
        // But nobody can answer a question that was not put.
        if let (Err(TrySendError::Full(event)), true) = (sender.try_send(event), asks || is_question) {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(event).await });
        }
    });
    let context = offer.context.clone().with_events(sink);

    let mut reached = None;
    let mut running = Vec::with_capacity(calls.len());
    for (place, (call, flow)) in calls.iter().zip(flows).enumerate() {
        let Target::Server(name) = &call.target else {
            running.push(Call::Clients);
            continue;
        };
        let arguments = call.arguments_value();
        let verdict = match reached {
            Some(limit) => Verdict::Stop(limit),
            None => meter.count_call(name, &arguments),
        };
        // That there is no such tool is the better answer, and the registry's.
        let fault = call.read_arguments().err().filter(|_| offer.selection.get(name).is_some());
        let refusal = match (verdict, fault) {
            (Verdict::Run, Some(fault)) => {
                let text = format!("Error: the arguments are not valid JSON: {fault}. Send one JSON object.");
                (ErrorKind::InvalidArguments, text)
            }
            (Verdict::Run, None) => {
                let mut tool_call = ToolCall::new(name, arguments)
                    .with_id(&call.id)
                    .with_origin(call.origin.clone())
                    .with_retries(1);
                tool_call.raw_argument.clone_from(&call.raw_argument);
                if call.is_interrupted {
                    tool_call = tool_call.after_interruption();
                }
                let context = context.clone().with_flow(Arc::clone(flow));
                running.push(Call::Task(tools.spawn(make(about, context, tool_call, place))));
                continue;
            }
            (Verdict::Warn, _) => {
                let text = "Error: this call has been made already with the same arguments. Use the result you have, or answer without it.";
                (ErrorKind::Refused, text.to_owned())
            }
            (Verdict::Stop(limit), _) => {
                reached = Some(limit);
                (ErrorKind::Refused, "Error: not run, a limit was reached.".to_owned())
            }
        };
        let (kind, text) = refusal;
        refuse(call, name, kind, &text, offer, events).await;
        outcomes.add(place, not_run(call, name, text));
        running.push(Call::Answered);
    }

    (Running { calls: running, outcomes: outcomes.clone(), reached }, parts)
}

impl Running {
    /// Waits for all of them.
    pub(super) async fn finish(self) -> Results {
        let mut ended = Vec::with_capacity(self.calls.len());
        for call in self.calls {
            ended.push(match call {
                Call::Clients => None,
                Call::Answered => Some(Ok(())),
                Call::Task(task) => Some(task.await),
            });
        }
        // Not before all have ended: until then whoever stops waiting finds them there.
        let mut outcomes = self.outcomes.take();
        let (mut answers, mut told) = (Vec::with_capacity(ended.len()), Vec::new());
        let (mut read, mut usage) = (HasRead::default(), Usage::default());
        for (place, ended) in ended.into_iter().enumerate() {
            let reported = outcomes.remove(&place);
            answers.push(ended.map(|ended| match reported {
                Some(reported) => {
                    read.note(reported.reads, &reported.name);
                    told.push(reported.told);
                    usage.input = usage.input.saturating_add(reported.usage.input_tokens);
                    usage.output = usage.output.saturating_add(reported.usage.output_tokens);
                    reported.answered
                }
                // The registry catches a tool's panic; this is the runtime going down.
                None => {
                    let why = ended.err().map(|error| format!(": {error}")).unwrap_or_default();
                    error(format!("Error: the call was not finished{why}"))
                }
            }));
        }
        Results { answers, told, usage, reached: self.reached, read }
    }
}

fn error(text: String) -> Answered {
    Answered { text, pictures: Vec::new(), is_error: true }
}

fn not_run(call: &FoundCall, name: &str, text: String) -> Reported {
    Reported {
        answered: error(text),
        told: Told { id: call.id.clone(), ..Told::default() },
        name: name.to_owned(),
        reads: Reads::NOTHING,
        usage: ModelUsage::default(),
    }
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
/// gone away is cancelled and still leaves its record.
fn make(
    about: About<'_>,
    context: ToolContext,
    call: ToolCall,
    place: usize,
) -> impl Future<Output = ()> + Send + use<> + 'static {
    let (offer, events, limit) = (Arc::clone(about.offer), about.events.clone(), about.limit);
    let (clock, outcomes) = (Arc::clone(about.clock), about.outcomes.clone());
    clock.begin();
    async move {
        let outcome = offer.selection.execute(&context, call).await;
        clock.end(&outcome.call_id);
        let told = outcome.result.as_ref().map(told).unwrap_or_default();
        let told = Told { id: outcome.call_id.clone(), ..told };
        let (text, pictures) = offer.reported(&outcome);
        let text = offer.shorten_result(text, limit).await;
        // A tool that says itself why it was not successful has its own words for that.
        let answered = Answered { text, pictures, is_error: outcome.result.is_err() };
        let event = finished(&outcome);
        let (usage, reads) = (outcome.model_usage, outcome.reads);
        outcomes.add(place, Reported { answered, told, name: outcome.tool_name, reads, usage });
        // Nobody listens any more: the record is kept all the same.
        let _ = events.send(TurnEvent::Tool(event).into()).await;
    }
}

/// What the person gets of a result.
fn told(result: &ToolResult) -> Told {
    let ends = result.ends_turn && result.success;
    let ending = ends.then(|| match &result.value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        value => format!("```json\n{value:#}\n```"),
    });
    let message = result.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    // Where nothing else is said, a text is for the person, too.
    let is_shown = |part: &&Content| ends || parts::is_for_person(part);
    let parts = result.content.iter().filter(is_shown).cloned().collect();
    Told { id: String::new(), ending, message: message.map(str::to_owned), parts }
}

fn progress(event: ToolEvent) -> ToolStatus {
    let ToolEvent {
        call_id: id,
        tool_name: name,
        message,
        progress,
        approval,
        approval_seconds,
        approval_reason: reason,
        question,
        ..
    } = event;
    let question = question.map(|asked| {
        let PendingQuestion { id, question, seconds, waits } = *asked;
        let text = question.text();
        let Question { message, schema } = question;
        Box::new(AskedQuestion { id, message, schema, text, seconds, waits })
    });
    ToolStatus::Progress { id, name, message, progress, approval, approval_seconds, reason, question }
}

fn finished(outcome: &ToolOutcome) -> ToolStatus {
    let reply = outcome.to_reply();
    ToolStatus::Finished(Box::new(FinishedTool {
        id: reply.call_id,
        name: reply.tool_name,
        success: reply.success,
        result: reply.result,
        error: reply.error,
        cancelled: matches!(&outcome.result, Err(error) if error.kind() == ErrorKind::Cancelled),
        message: reply.message,
        side_effects: reply.side_effects,
        duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        approval: reply.approval,
        question: reply.question,
        retry_at: reply.retry_at.map(|at| at.to_string()),
        changed_arguments: reply.changed_arguments,
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
