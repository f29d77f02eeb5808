//! One turn: from a request to the model's last word.

use std::sync::Arc;

use registry_core::{Caller, Conversation, ToolContext};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{
    Backend, ClientCall, LAST_WORDS, ToolStyle, TurnEvent,
    answer::Answer,
    history::History,
    limits::{Meter, Reached},
    narrow,
    offer::{Offer, Target},
    paragraphs::Paragraphs,
    prompt,
    reader::{self, FoundCall, Reader},
    recover, runner,
    upstream::UpstreamError,
};
use crate::{
    dialect::ScanOptions,
    provider::openai::{self, BadRequest, ChatRequest, Object, text_of},
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
    let cancellation = backend.0.stopping.child_token();
    let context = context_of(&backend, &request, caller)?.with_cancellation(cancellation.clone());
    let offer = Arc::new(Offer::new(&backend, &request, context)?);
    let messages = backend.0.memory.complete(&offer.context.caller().user, request.messages);
    let (sender, events) = mpsc::channel(EVENTS_AHEAD);
    let run = Run {
        meter: Meter::new(backend.settings().limits),
        prompt_style: backend.settings().tool_style == ToolStyle::Prompt,
        backend: backend.clone(),
        offer,
        history: History::new(messages),
        model: request.model,
        stream: request.stream,
        rest: request.rest,
        usage: None,
        paragraphs: Paragraphs::default(),
        tools: TaskTracker::new(),
        events: sender,
    };
    backend.0.turns.spawn(run.run_to_end(cancellation.clone()));
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
    Ok(backend.registry().context(caller).with_conversation(Conversation {
        user_message,
        chat_id: extension.chat_id.clone(),
        kb_context: extension.kb_context.clone(),
        confidence: extension.confidence,
    }))
}

struct Run {
    backend: Backend,
    offer: Arc<Offer>,
    history: History,
    model: Option<String>,
    stream: bool,
    rest: Object,
    /// Whether tools are told in the prompt.
    prompt_style: bool,
    meter: Meter,
    usage: Option<Value>,
    paragraphs: Paragraphs,
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
                for call in reader.calls.iter_mut().filter(|call| call.target == Target::Client) {
                    // What is kept is found by the ids, so they must be ones that nobody else has.
                    call.id = reader::new_call_id();
                }
            }
            let results =
                runner::run(&reader.calls, &self.offer, &mut self.meter, &self.events, &self.tools).await;
            let limit = self.backend.settings().limits.max_result_characters;
            let shorten = |text| runner::shorten(text, limit);
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
            None => {
                let models = self.backend.upstream().models().await?;
                let first = models.first().and_then(|model| model.get("id")).and_then(Value::as_str);
                first.unwrap_or("default").to_owned()
            }
        };
        let _ = self.events.send(TurnEvent::Model(model.clone())).await;
        self.prompt_style |=
            self.backend.settings().tool_style == ToolStyle::Auto && self.backend.refuses_tools(&model);
        self.model = Some(model);
        Ok(())
    }

    /// Asks the model and reads its answer. What a server could not read itself is taken from its error and read here.
    async fn read_answer(&mut self, round: u32) -> Result<Reader, End> {
        let mut asked_again = false;
        loop {
            let mut reader = self.new_reader();
            let tools = self.offer.definitions(round).filter(|_| !self.prompt_style);
            let error = match self.backend.upstream().ask(&self.request(round), tools).await {
                Ok(answer) => match self.read(answer, &mut reader).await? {
                    None => return Ok(reader),
                    Some(error) => error,
                },
                Err(error) => error,
            };
            let message = match &error {
                UpstreamError::Status { message, .. } | UpstreamError::Failed(message) => message.as_str(),
                _ => return Err(End::Upstream(error)),
            };
            let raw = recover::raw_text(message);
            if let UpstreamError::Status { status, .. } = error
                && self.may_use_prompt()
                && raw.is_none()
                && recover::refuses_tools(status, message)
            {
                tracing::warn!(
                    message,
                    "the model server takes no tools; they are told in the prompt from now on"
                );
                self.backend.set_refuses_tools(self.model.as_deref().unwrap_or_default());
                self.prompt_style = true;
                continue;
            }
            let Some(raw) = raw else { return Err(End::Upstream(error)) };
            if !asked_again && reader.is_blank() && !self.reads_as_call(raw) {
                // Half a call tells nothing. Asked once more the model mostly writes a whole one.
                tracing::warn!(message, "the model server could not read a call; asking once more");
                asked_again = true;
                continue;
            }
            tracing::warn!(message, "the model server could not read a call; it was read from its error");
            // A streaming server has sent the beginning already.
            let rest = reader.unread(raw);
            return match self.read(Answer::recovered(rest), &mut reader).await? {
                None => Ok(reader),
                Some(error) => Err(End::Upstream(error)),
            };
        }
    }

    fn new_reader(&self) -> Reader {
        let one_call = self.rest.get("parallel_tool_calls").is_some_and(|parallel| parallel == false);
        Reader::new(Arc::clone(&self.offer), self.scan_options(), self.history.call_ids(), one_call)
    }

    fn scan_options(&self) -> ScanOptions {
        let settings = self.backend.settings();
        ScanOptions {
            thinking: settings.thinking,
            only: settings.dialect,
            reading: settings.reading,
            ..ScanOptions::default()
        }
    }

    /// Whether a text has a call in it.
    fn reads_as_call(&self, text: &str) -> bool {
        !crate::dialect::parse(text, Arc::clone(&self.offer.offered), self.scan_options()).calls.is_empty()
    }

    fn may_use_prompt(&self) -> bool {
        !self.prompt_style && self.offer.has_tools() && self.backend.settings().tool_style == ToolStyle::Auto
    }

    /// Reads an answer to its end; an error of the server comes back with what was read before it.
    async fn read(&mut self, mut answer: Answer, reader: &mut Reader) -> Result<Option<UpstreamError>, End> {
        let mut events = Vec::new();
        while let Some(piece) = answer.next().await {
            let error = match piece {
                Ok(piece) => {
                    reader.take(piece, &mut events);
                    None
                }
                Err(error @ UpstreamError::Failed(_)) if recoverable(&error) => return Ok(Some(error)),
                Err(error) => Some(error),
            };
            if let Some(error) = error {
                reader.break_off(&mut events);
                self.send_all(&mut events).await?;
                runner::give_up(&reader.calls, &self.offer, &self.events).await;
                return Err(End::Upstream(error));
            }
            self.send_all(&mut events).await?;
        }
        reader.end(&mut events);
        self.send_all(&mut events).await?;
        Ok(None)
    }

    async fn send_all(&mut self, events: &mut Vec<TurnEvent>) -> Result<(), End> {
        for event in events.drain(..) {
            let event = match event {
                TurnEvent::Text(text) => TurnEvent::Text(self.paragraphs.join(text)),
                event => event,
            };
            self.events.send(event).await.map_err(|_| End::Gone)?;
        }
        Ok(())
    }

    /// The request for the model server, without the tools.
    fn request(&self, round: u32) -> Object {
        let mut request = self.rest.clone();
        request.insert("model".into(), self.model.clone().into());
        request.insert("stream".into(), self.stream.into());
        if self.stream {
            let mut options = request.shift_remove("stream_options").unwrap_or_default();
            if options.is_null() {
                options = json!({});
            }
            if let Value::Object(options) = &mut options {
                options.insert("include_usage".into(), true.into());
            }
            request.insert("stream_options".into(), options);
        }
        let settings = self.backend.settings();
        let mut messages = self.history.messages();
        let prompt =
            if self.offer.has_tools() { &settings.system_prompt_with_tools } else { &settings.system_prompt };
        prompt::add_system_prompt(&mut messages, prompt, &self.offer.selection);
        if let Some(definitions) = self.offer.definitions(round) {
            // A call was asked for and made; asked for again there would be no end to it.
            let choice = self.offer.choice.as_ref().filter(|_| round == 1);
            if self.prompt_style {
                request.shift_remove("parallel_tool_calls");
                prompt::tell_tools(&mut messages, definitions, settings.dialect, choice.is_some());
            } else if let Some(choice) = choice {
                request.insert("tool_choice".into(), choice.clone());
            }
        }
        request.insert("messages".into(), messages.into());
        request
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
            let user = &self.offer.context.caller().user;
            self.backend.0.memory.keep(
                user,
                client.iter().map(|call| call.id.as_str()),
                self.history.added(),
            );
        }
        match self.events.send(TurnEvent::ClientCalls(client)).await {
            Ok(()) => Some(End::Answered { reason: "tool_calls".into() }),
            Err(_) => Some(End::Gone),
        }
    }
}

fn recoverable(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Failed(message) if recover::raw_text(message).is_some())
}
