//! One turn: from a request to the model's last word.

mod ask;

use std::{sync::Arc, time::Duration};

use registry_core::{Caller, Conversation, ToolContext};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use toolrack_apis::openai::{self, BadRequest, ChatRequest, Object, text_of};

use super::{
    Backend, ClientCall, LAST_WORDS, ToolStyle, TurnEvent,
    announce::Unsettled,
    history::History,
    limits::{Meter, Reached},
    narrow,
    offer::{Offer, Target},
    paragraphs::Paragraphs,
    reader::{self, FoundCall},
    runner,
    upstream::UpstreamError,
};

/// How many events may wait for a slow reader before the turn waits for it.
const EVENTS_AHEAD: usize = 64;

/// A turn that is running. Dropping it cancels the model's answer and the tools.
#[derive(Debug)]
pub struct Turn {
    events: mpsc::Receiver<TurnEvent>,
    over: bool,
    cancellation: CancellationToken,
    _cancel: DropGuard,
}

impl Turn {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        // What a tool has left running may hold the channel open for as long as it likes.
        if self.over {
            return None;
        }
        let event = self.events.recv().await.unwrap_or_else(|| {
            TurnEvent::Failed(UpstreamError::Interrupted("the turn ended without an answer".into()))
        });
        self.over = matches!(event, TurnEvent::Finished { .. } | TurnEvent::Failed(_));
        Some(event)
    }

    /// Ends the turn from outside.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

pub(super) fn start(backend: Backend, request: ChatRequest, caller: Caller) -> Result<Turn, BadRequest> {
    let cancellation = backend.shared.stopping.child_token();
    let context = context_of(&backend, &request, caller)?.with_cancellation(cancellation.clone());
    let offer = Arc::new(Offer::new(&backend, &request, context)?);
    let messages = backend.shared.memory.complete(&backend.owner(offer.context.caller()), request.messages);
    let (sender, events) = mpsc::channel(EVENTS_AHEAD);
    let run = Run {
        meter: Meter::new(backend.settings().limits),
        prompt_style: backend.settings().tool_style == ToolStyle::Prompt,
        backend: backend.clone(),
        offer,
        history: History::new(messages),
        model: request.model,
        stream: request.stream,
        deltas: request.toolrack.deltas,
        rest: request.rest,
        usage: None,
        paragraphs: Paragraphs::default(),
        unsettled: Unsettled::default(),
        tools: TaskTracker::new(),
        events: sender,
    };
    backend.shared.turns.spawn(run.run_to_end(cancellation.clone()));
    Ok(Turn { events, over: false, _cancel: cancellation.clone().drop_guard(), cancellation })
}

/// The caller as the request narrows it, with the conversation around.
fn context_of(backend: &Backend, request: &ChatRequest, caller: Caller) -> Result<ToolContext, BadRequest> {
    let caller = narrow::narrow(backend.registry(), request, caller)?;
    let extension = &request.toolrack;
    let user_message = request
        .messages
        .iter()
        .rfind(|message| openai::role(message) == "user")
        .and_then(|message| message.get("content"))
        .map(text_of);
    let context = backend.context(caller).with_conversation(Conversation {
        user_message,
        chat_id: extension.chat_id.clone(),
        kb_context: extension.kb_context.clone(),
        confidence: extension.confidence,
    });
    // A client without a stream hears nothing while the call waits; the answer says that it does.
    let patience = extension.approval_wait_seconds.or((!request.stream).then_some(0));
    Ok(match patience {
        Some(seconds) => context.with_approval_wait(Duration::from_secs(seconds)),
        None => context,
    })
}

struct Run {
    backend: Backend,
    offer: Arc<Offer>,
    history: History,
    model: Option<String>,
    stream: bool,
    /// Whether calls are reported while the model writes them.
    deltas: bool,
    rest: Object,
    /// Whether tools are described in the prompt.
    prompt_style: bool,
    meter: Meter,
    usage: Option<Value>,
    paragraphs: Paragraphs,
    unsettled: Unsettled,
    /// The calls that run.
    tools: TaskTracker,
    events: mpsc::Sender<TurnEvent>,
}

/// Why a turn ends.
enum End {
    /// The model has answered, or called the client's tools.
    Answered {
        reason: String,
    },
    Limit(Reached),
    Upstream(UpstreamError),
    /// Nobody listens any more.
    Gone,
}

impl Run {
    async fn run_to_end(mut self, cancellation: CancellationToken) {
        let limits = self.backend.settings().limits;
        let end = tokio::select! {
            end = self.rounds() => end,
            () = cancellation.cancelled() => End::Gone,
            () = tokio::time::sleep(limits.wall_clock()) => End::Limit(Reached::Time(limits.max_seconds)),
        };
        if matches!(end, End::Limit(_) | End::Gone) {
            // Tools that still run belong to a turn that is over, and say so before its last word.
            cancellation.cancel();
            self.tools.close();
            let _ = tokio::time::timeout(LAST_WORDS, self.tools.wait()).await;
        }
        // What was announced and will not be made is taken back.
        let reason = match end {
            // A reader that takes nothing more would be waited for.
            End::Gone => return,
            End::Upstream(_) => "the answer broke off",
            End::Answered { .. } | End::Limit(_) => "the turn was stopped",
        };
        let mut aborted = self.unsettled.abort(reason);
        let _ = self.send_all(&mut aborted).await;
        let last = match end {
            End::Answered { reason } => TurnEvent::Finished { reason, usage: self.usage.take() },
            End::Limit(reached) => {
                tracing::warn!(limit = ?reached, "a turn was stopped");
                self.paragraphs.part();
                let _ = self.send_all(&mut vec![TurnEvent::Text(reached.message())]).await;
                TurnEvent::Finished { reason: "stop".into(), usage: self.usage.take() }
            }
            End::Upstream(error) => {
                tracing::error!(%error, "the model did not answer");
                TurnEvent::Failed(error)
            }
            End::Gone => return,
        };
        let _ = self.events.send(last).await;
    }

    async fn rounds(&mut self) -> End {
        if let Err(error) = self.choose_model().await {
            return End::Upstream(error);
        }
        loop {
            let round = match self.meter.begin_round() {
                Ok(round) => round,
                Err(reached) => return End::Limit(reached),
            };
            self.paragraphs.part();
            let mut reader = match self.read_answer(round).await {
                Ok(reader) => reader,
                Err(end) => return end,
            };
            if let Some(usage) = reader.usage.take() {
                self.usage = Some(openai::add_usage(self.usage.take(), usage));
            }
            if reader.calls.is_empty() {
                let reason = reader
                    .finish
                    .take()
                    .filter(|reason| reason != "tool_calls")
                    .unwrap_or_else(|| "stop".into());
                return End::Answered { reason };
            }
            let must_be_kept = self.history.is_beyond_client(&reader.calls);
            if must_be_kept {
                let is_client = |call: &&mut FoundCall| call.target == Target::Client && !call.announced;
                for call in reader.calls.iter_mut().filter(is_client) {
                    // What is kept is found by the ids, so they must be ones that nobody else has.
                    call.id = reader::new_call_id();
                }
            }
            let results =
                runner::run(&reader.calls, &self.offer, &mut self.meter, &self.events, &self.tools).await;
            let limit = self.backend.settings().limits.max_result_characters;
            let shorten = |text| runner::shorten(text, limit);
            for (id, message) in results.messages {
                self.paragraphs.part();
                let message = TurnEvent::Message { id, text: shorten(message) };
                if let Err(end) = self.send_all(&mut vec![message]).await {
                    return end;
                }
            }
            self.history.add(&reader, results.texts.into_iter().map(|text| text.map(shorten)).collect());
            if let Some(reached) = results.reached {
                return End::Limit(reached);
            }
            if let Some(end) = self.hand_over(reader.calls, must_be_kept).await {
                return end;
            }
        }
    }

    /// The model's name, once for the turn.
    async fn choose_model(&mut self) -> Result<(), UpstreamError> {
        let configured = self.model.take().or_else(|| self.backend.settings().model.clone());
        let model = match configured {
            Some(model) => model,
            None => self.backend.upstream().first_model().await?,
        };
        let _ = self.events.send(TurnEvent::Model(model.clone())).await;
        self.prompt_style |=
            self.backend.settings().tool_style == ToolStyle::Auto && self.backend.refuses_tools(&model);
        self.model = Some(model);
        Ok(())
    }

    async fn send_all(&mut self, events: &mut Vec<TurnEvent>) -> Result<(), End> {
        for event in events.drain(..) {
            let event = match event {
                TurnEvent::Text(text) => TurnEvent::Text(self.paragraphs.join(text)),
                TurnEvent::Message { id, text } => {
                    TurnEvent::Message { id, text: self.paragraphs.join(text) }
                }
                event => event,
            };
            let place = self.events.reserve().await.map_err(|_| End::Gone)?;
            self.unsettled.note(&event);
            place.send(event);
        }
        Ok(())
    }

    /// Ends the turn where the client has to run something.
    async fn hand_over(&mut self, calls: Vec<FoundCall>, must_be_kept: bool) -> Option<End> {
        let client: Vec<ClientCall> = calls
            .into_iter()
            .filter(|call| call.target == Target::Client)
            .map(|call| ClientCall {
                // Broken JSON is the client's to see as it was written.
                arguments: if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments },
                id: call.id,
                name: call.wire_name,
            })
            .collect();
        if client.is_empty() {
            return None;
        }
        if must_be_kept {
            let owner = self.backend.owner(self.offer.context.caller());
            self.backend.shared.memory.keep(
                &owner,
                client.iter().map(|call| call.id.as_str()),
                self.history.added(),
            );
        }
        Some(match self.send_all(&mut vec![TurnEvent::ClientCalls(client)]).await {
            Ok(()) => End::Answered { reason: "tool_calls".into() },
            Err(end) => end,
        })
    }
}
