//! What a turn does: from a request to the model's last word.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{future::OptionFuture, join};
use registry_core::{
    Caller,
    flow::HasRead,
    trace::{Span, Trace},
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolrack_apis::{
    BadRequest, Call, Failure, FailureKind, FinishReason, Message, Provider, Request, ResponseFormat, Role,
    TurnEvent, Usage,
};

use super::{
    Backend, LAST_WORDS,
    accepted::Accepted,
    announce::Unsettled,
    beginning::{assemble, prepare},
    call::{FoundCall, new_call_id},
    calls::{Called, Interrupted},
    clock::ToolClock,
    context::TurnContext,
    flow,
    form::{Forming, declare_required, fits_already},
    handle::{Answer, Events, Turn, TurnAnswer},
    history,
    learned::Evidence,
    limits::{Meter, Reached},
    live::Listed,
    offer::{Offer, Round, Target},
    paragraphs::Paragraphs,
    pictures::PictureLimit,
    reader::Reader,
    require::Required,
    reread::Unread,
    runner::Outcomes,
    traced,
    transcript::{Added, Ending, Place, Shown},
};
use crate::{
    upstream::{Route, UpstreamError},
    woken::when_woken,
};

/// How many events may wait for a slow reader before the turn waits for it.
const EVENTS_AHEAD: usize = 32;
/// What is said of a turn that an admin has stopped.
const STOPPED: &str = "an admin has stopped this turn";

pub(super) fn start(mut backend: Backend, mut request: Request, caller: Caller) -> Result<Turn, BadRequest> {
    let span = traced::turn(&mut backend, &request);
    let cancellation = backend.shared.stopping.child_token();
    let offer = prepare(&backend, &mut request, caller, cancellation.clone())?;
    let settings = backend.settings();
    declare_required(&mut request.format);
    // Where the server's tools may be called, the answer gets its form when all calls are done.
    let form = offer.has_server_tools().then(|| request.format.take()).flatten();
    let said = flow::said_in(&request);
    let (sender, events) = mpsc::channel(EVENTS_AHEAD);
    let answer = Arc::default();
    let listed = backend.shared.live.begin(
        (backend.registry().tenant(), &offer.context.caller().user),
        request.extension.chat_id.clone(),
        backend.registry().clock().now(),
        backend.trace.as_ref().map(Trace::place),
    );
    let run = Run {
        meter: Meter::new(settings.limits),
        clock: Arc::new(ToolClock::new(settings.limits.tool_time())),
        prompt_style: false,
        backend: backend.clone(),
        offer,
        sent: request.messages.len(),
        place: Place::default(),
        shown: Shown::default(),
        form,
        required: None,
        forming: None,
        unread: None,
        untold: BTreeSet::new(),
        is_unconstrained: false,
        is_raw_off: false,
        evidence: None,
        picture_limit: PictureLimit::default(),
        accepted: Accepted::default(),
        parallel: request.parallel,
        route: Route::default(),
        api: Provider::OpenAi,
        request,
        usage: Usage::default(),
        paragraphs: Paragraphs::default(),
        unsettled: Unsettled::default(),
        tools: TaskTracker::new(),
        has_run_tools: false,
        under_way: None,
        outcomes: Outcomes::default(),
        keeping: None,
        read: HasRead::default(),
        said,
        context: TurnContext::default(),
        span,
        listed,
        answer: Arc::clone(&answer),
        events: sender,
    };
    let running = backend.shared.turns.track_future(run.run_to_end(cancellation.clone()));
    Ok(Turn::new(running, events, answer, cancellation))
}

pub(super) struct Run {
    pub(super) backend: Backend,
    pub(super) offer: Arc<Offer>,
    /// The request to the model server, with the conversation so far.
    pub(super) request: Request,
    /// How many of the messages there were before the turn.
    pub(super) sent: usize,
    /// Where the turn stands in its conversation.
    pub(super) place: Place,
    /// What the client has been shown.
    pub(super) shown: Shown,
    /// The form of the answer, which is asked for when all calls are done: a grammar leaves no room for calls.
    pub(super) form: Option<ResponseFormat>,
    /// What has come of this round, where its calls are required.
    pub(super) required: Option<Required>,
    /// What has come of asking for the form of the answer.
    pub(super) forming: Option<Forming>,
    /// The last answer, where it has a call that cannot be read.
    pub(super) unread: Option<Unread>,
    /// What the person has been told that the model is not.
    pub(super) untold: BTreeSet<String>,
    /// Whether the server has refused what keeps a model to calls.
    pub(super) is_unconstrained: bool,
    /// Whether the raw route has failed, or is not there.
    pub(super) is_raw_off: bool,
    /// Why the tools are described in the prompt, until that has worked.
    pub(super) evidence: Option<Evidence>,
    /// How many pictures of results the model is sent.
    pub(super) picture_limit: PictureLimit,
    /// What the server accepts.
    pub(super) accepted: Accepted,
    /// Whether an answer may have several calls.
    pub(super) parallel: Option<bool>,
    /// Where the model is asked.
    pub(super) route: Route,
    /// The API that it was asked in.
    pub(super) api: Provider,
    /// Whether tools are described in the prompt.
    pub(super) prompt_style: bool,
    pub(super) meter: Meter,
    pub(super) clock: Arc<ToolClock>,
    pub(super) usage: Usage,
    pub(super) paragraphs: Paragraphs,
    pub(super) unsettled: Unsettled,
    /// The calls that run.
    pub(super) tools: TaskTracker,
    /// Whether a tool of the server has run in this turn.
    pub(super) has_run_tools: bool,
    /// The calls that run, some of which have effects, as the model is told of them if the turn ends before they do.
    pub(super) under_way: Option<Vec<Message>>,
    /// What has come of them so far.
    pub(super) outcomes: Outcomes,
    /// The rounds so far are being kept; whether that has worked.
    pub(super) keeping: Option<JoinHandle<bool>>,
    /// What the model has read so far that is private or untrusted.
    pub(super) read: HasRead,
    /// All that the person has said in the conversation.
    pub(super) said: Arc<str>,
    /// What is known of the model's context.
    pub(super) context: TurnContext,
    /// The span of the turn, where it is traced.
    span: Option<Span>,
    /// Its place among the turns that run.
    pub(super) listed: Listed,
    /// Gets what was added when the turn is over.
    answer: Answer,
    pub(super) events: Events,
}

/// Why a turn ends.
pub(super) enum End {
    /// The model has answered, or called the client's tools.
    Answered {
        reason: FinishReason,
    },
    Limit(Reached),
    Upstream(UpstreamError),
    /// An admin has stopped it.
    Stopped,
    /// Nobody listens any more.
    Gone,
}

impl Run {
    async fn run_to_end(mut self, cancellation: CancellationToken) {
        let stop = self.listed.stop();
        let end = tokio::select! {
            end = self.rounds() => end,
            () = when_woken(Box::pin(cancellation.cancelled())) => End::Gone,
            () = when_woken(Box::pin(stop.cancelled())) => End::Stopped,
        };
        if let Some(mut span) = self.span.take() {
            traced::turn_ended(&mut span, &end, &self.usage);
        }
        if matches!(end, End::Limit(_) | End::Stopped | End::Gone) {
            // Tools that still run belong to a turn that is over, and say so before its last word.
            cancellation.cancel();
            self.tools.close();
            let _ = tokio::time::timeout(LAST_WORDS, self.tools.wait()).await;
        }
        // What was announced and will not be made is taken back.
        let reason = match &end {
            // A reader that takes nothing more would be waited for.
            End::Gone => return Box::pin(self.keep_broken(None)).await,
            End::Upstream(error) => {
                Box::pin(self.keep_broken(Some(error))).await;
                "the answer broke off"
            }
            End::Stopped => {
                Box::pin(self.keep_broken(None)).await;
                STOPPED
            }
            End::Answered { .. } | End::Limit(_) => "the turn was stopped",
        };
        let mut aborted = self.unsettled.abort(reason);
        let _ = self.send_all(&mut aborted).await;
        let usage = std::mem::take(&mut self.usage);
        let last = match end {
            End::Answered { reason } => TurnEvent::Finished { reason, usage },
            End::Limit(reached) => {
                tracing::warn!(limit = ?reached, "a turn was stopped");
                Box::pin(self.add_under_way()).await;
                self.paragraphs.part();
                let message = reached.message();
                // The model knows as well why it has not answered.
                self.request.messages.push(Message::text(Role::Assistant, message.clone()));
                let _ = self.send_all(&mut vec![TurnEvent::Text(message)]).await;
                Box::pin(self.keep(None)).await;
                TurnEvent::Finished { reason: FinishReason::Length, usage }
            }
            End::Upstream(error) => {
                tracing::error!(%error, "the model did not answer");
                let failure = self.failure_of(error);
                // Asked again the tools would run again.
                TurnEvent::Failed(if self.has_run_tools { failure.not_again() } else { failure })
            }
            End::Stopped => TurnEvent::Failed(Failure::new(FailureKind::Permission, STOPPED).not_again()),
            End::Gone => return,
        };
        self.restore_results();
        let messages = self.added_behind(self.place.resumed.messages).to_vec();
        let (found, seen) = (self.offer.found.names(), self.place.seen.take());
        let added = TurnAnswer { messages, found, seen };
        *self.answer.lock() = added;
        let _ = self.events.send(last.into()).await;
    }

    async fn rounds(&mut self) -> End {
        // Most of a turn is the model's answer: what else is waited for is in boxes, and takes room only then.
        if let Err(error) = Box::pin(self.choose_model()).await {
            return End::Upstream(error);
        }
        let interrupted = Box::pin(self.assemble()).await;
        if self.place.is_elsewhere() {
            return self.is_made_elsewhere();
        }
        if let Some(interrupted) = interrupted
            && let Some(end) = Box::pin(self.go_on(interrupted)).await
        {
            return end;
        }
        loop {
            let round = match self.meter.begin_round() {
                Ok(round) => round,
                Err(reached) => return End::Limit(reached),
            };
            self.listed.note(|turn| turn.rounds = round);
            Box::pin(self.read_files()).await;
            Box::pin(self.make_room()).await;
            if let (1, Some((_, tokens))) = (round, self.tools_of_whole()) {
                let _ = self.events.send(TurnEvent::PromptTokens(tokens).into()).await;
            }
            self.paragraphs.part();
            let mut reader = match self.read_answer(round).await {
                Ok(reader) => reader,
                Err(end) => return end,
            };
            self.count_usage(&mut reader);
            if reader.calls.is_empty() {
                if let Some(form) = self.form.take_if(|form| !fits_already(form, &reader.text)) {
                    self.request.format = Some(form);
                    continue;
                }
                if !reader.text.is_empty() || reader.has_thought() {
                    self.add(history::messages_of(&reader, Vec::new()));
                }
                let reason = reader.finish.take();
                if self.form.is_some()
                    && let Err(end) = self.send_all(&mut vec![TurnEvent::Text(reader.text)]).await
                {
                    return end;
                }
                Box::pin(self.keep(None)).await;
                let reason = reason.filter(|reason| *reason != FinishReason::ToolCalls);
                return End::Answered { reason: reason.unwrap_or(FinishReason::Stop) };
            }
            let added = self.added_behind(self.place.resumed.messages);
            let must_be_kept = history::is_beyond_client(added, &reader);
            if must_be_kept {
                let is_client = |call: &&mut FoundCall| call.target == Target::Client && !call.announced;
                for call in reader.calls.iter_mut().filter(is_client) {
                    // What is kept is found by the ids, so they must be ones that nobody else has.
                    call.id = new_call_id();
                }
            }
            self.under_way = self.as_interrupted(&reader);
            if let Some(end) = Box::pin(self.make_calls(Called::Read(Box::new(reader)))).await {
                return end;
            }
        }
    }

    /// Puts the conversation together; gives the calls that the turn goes on with.
    async fn assemble(&mut self) -> Option<Interrupted> {
        let model = self.route.full_name();
        let may_resume = self.offer.has_server_tools() && !self.request.conversation.begins_anew;
        let resuming = may_resume.then(|| self.offer.context.cancellation().clone());
        self.place = assemble(&self.backend, &mut self.request, &self.offer, &model, resuming).await;
        (self.sent, self.shown) = (self.request.messages.len(), self.place.shown());
        if self.request.conversation.goes_on {
            let said = self.request.messages.iter().rev().take_while(|message| message.role != Role::User);
            self.place.resumed.messages = said.count();
        }
        let interrupted = self.take_interrupted();
        self.count_resumed();
        self.recall_read();
        interrupted
    }

    /// Keeps what the client has not seen of the turn, which has ended with an answer or with calls of the client's tools.
    pub(super) async fn keep(&mut self, calls: Option<&[&Call]>) {
        self.restore_results();
        self.rounds_are_kept().await;
        self.place.has_answer(&calls.map_or(Ending::Answer(&self.shown), Ending::Calls));
        let read = OptionFuture::from(calls.is_none().then(|| self.keep_read(Some(&self.shown))).flatten());
        join!(read, self.keep_transcript(calls));
    }

    async fn keep_transcript(&self, calls: Option<&[&Call]>) {
        let messages = self.added_behind(self.place.trailing);
        let (ending, messages) = Ending::of(&self.shown, calls, messages, &self.place);
        if messages.is_none() && !self.offer.has_server_tools() {
            return;
        }
        // A user who was removed meanwhile has no conversations.
        if messages.is_some() && !self.backend.has_user().await {
            return;
        }
        let (tenant, found) = (self.backend.registry().tenant(), self.offer.found.names());
        let owner = (tenant, self.offer.context.caller().user.as_str());
        let of = |messages| Added { messages, found: &found, read: &self.read, texts: &[], unfinished: None };
        let added = messages.map(of);
        if added.is_some() {
            self.backend.transcripts.keep_results(owner, self.offer.take_left_out()).await;
        }
        self.backend.transcripts.keep(owner, &self.place, added, ending).await;
    }

    /// Counts the tokens that an answer has taken, once.
    pub(super) fn count_usage(&mut self, reader: &mut Reader) {
        if let Some(usage) = reader.usage.take() {
            self.usage.add(usage, self.api);
        }
    }

    /// Adds messages to the conversation, in which is what the model said so far.
    pub(super) fn add(&mut self, messages: Vec<Message>) {
        self.request.messages.extend(messages);
        self.shown.settle();
    }

    /// What the turn has added to the conversation, with so many messages before that.
    pub(super) fn added_behind(&self, before: usize) -> &[Message] {
        self.request.messages.get(self.sent.saturating_sub(before)..).unwrap_or_default()
    }

    /// Which round it is, of this number.
    pub(super) fn round(&self, number: u32) -> Round {
        Round { number, is_last: number == self.backend.settings().limits.max_rounds }
    }

    /// The model and its server, once for the turn.
    async fn choose_model(&mut self) -> Result<(), UpstreamError> {
        let asked = self.request.model.take().or_else(|| self.backend.settings().model.clone());
        self.route = self.backend.upstream().route(asked.as_deref()).await?;
        self.route.set_asker(self.backend.asker(self.offer.context.caller()));
        let name = asked.unwrap_or_else(|| self.route.model().to_owned());
        let _ = self.events.send(TurnEvent::Model(name).into()).await;
        self.begin_route();
        // Ollama leaves tools aside where the answer has a form (ollama/ollama#13750).
        if self.offer.has_tools() && self.route.api().await == Provider::Ollama {
            self.form = self.form.take().or_else(|| self.request.format.take());
        }
        Ok(())
    }

    fn begin_route(&mut self) {
        self.prompt_style = self.backend.asks_in_prompt(&self.route);
        (self.is_unconstrained, self.evidence) = (false, None);
        self.picture_limit = self.backend.picture_limit(&self.route);
        self.accepted = self.backend.shared.learned.accepted(&self.route.learner());
        self.request.model = Some(self.route.model().to_owned());
        let model = self.route.full_name();
        self.listed.note(|turn| turn.model = Some(model));
        self.route.set_context(self.backend.settings().context_of(self.route.model()));
        self.route.restrict(&mut self.request);
    }

    /// Goes on with the next server, if there is one and the error is about this one.
    pub(super) fn fall_back(&mut self, error: &UpstreamError) -> bool {
        let is_next = self.route.fall_back(error);
        if is_next {
            self.begin_route();
        }
        is_next
    }
}
