//! Asks the model, and reads its answer.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use registry_core::trace::Span;
use toolrack_apis::{FailureKind, ToolChoice};
use toolrack_dialects::ScanOptions;

use super::{
    ToolStyle,
    accepted::Accepted,
    constrain::Constraint,
    context::TooLong,
    form::Forming,
    history,
    learned::Evidence,
    offer::Round,
    pictures::PictureLimit,
    prompt,
    reader::{Options, Reader},
    recover,
    run::{End, Run},
    runner,
    style::Style,
    traced,
};
use crate::{
    traces,
    upstream::{Answer, UpstreamError},
};

/// How long to wait before a model server is asked again that was away, where tools have run already and the client cannot ask again.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// What helps a server that gave an error.
#[derive(Debug, Clone, Copy)]
enum Remedy {
    /// To ask with the tools in the prompt.
    Prompt(Evidence),
    /// To ask without what keeps the model to calls.
    NoConstraint,
    /// To ask for the form of the answer in the prompt.
    FormInPrompt,
    /// To ask with fewer pictures of results.
    FewerPictures(PictureLimit),
    /// To let the model look for the server's tools, whose definitions are too long: for this request, or for any.
    DeferTools(TooLong),
    /// To ask the chat endpoint.
    Chat,
    /// To say something in another way.
    Otherwise(Accepted),
}

impl Run {
    /// Asks the model and reads its answer.
    ///
    /// A server that refuses tools, or cannot read what its model writes, is asked again with the tools in the prompt. That is remembered
    /// for the model only after it has worked: the error may have been about something else in this one request. That an answer could not
    /// be read may have been the answer's own fault, so it has to happen in several turns.
    pub(super) async fn read_answer(&mut self, number: u32) -> Result<Reader, End> {
        let reader = self.ask_until_called(self.round(number)).await?;
        if let Some(evidence) = self.evidence.take() {
            self.backend.shared.learned.prompt_has_helped(self.route.learner(), evidence);
        }
        self.learn_pictures();
        self.learn_accepted();
        self.learn_of_tools();
        Ok(reader)
    }

    /// Asks until there is an answer. What a server could not parse itself is taken from its error and parsed here.
    pub(super) async fn ask_until_read(&mut self, round: Round) -> Result<Reader, End> {
        let mut asked_again = false;
        let mut pauses = if self.has_run_tools { PAUSES.as_slice() } else { &[] }.iter();
        loop {
            let as_asked = self.adapt().await;
            let style = Box::pin(self.style(round)).await;
            let mut reader = self.new_reader(round, &style);
            let mut span = traced::chat(self.backend.trace.as_ref(), &self.route);
            let within = span.as_ref().and_then(Span::within).or_else(|| self.backend.trace.clone());
            let asked = traces::asking(within, Box::pin(self.ask(round, &style))).await;
            self.put_back(as_asked);
            // Before the client sees more.
            self.rounds_are_kept().await;
            let read = match asked {
                Ok(answer) => self.read(answer, &mut reader).await?,
                Err(error) => Some(error),
            };
            if let Some(span) = &mut span {
                traced::chat_ended(span, &reader, read.as_ref());
            }
            drop(span);
            let Some(error) = read else { return Ok(reader) };
            let raw = error.message().and_then(recover::raw_text);
            let remedy = if raw.is_none() { self.remedy(&error, &style) } else { None };
            // What the model has written, and what this server can be helped with, is not asked of another.
            if !reader.has_begun() && raw.is_none() && remedy.is_none() && self.fall_back(&error) {
                continue;
            }
            if is_away(&error)
                && remedy.is_none()
                && reader.is_blank()
                && let Some(pause) = pauses.next()
            {
                tracing::warn!(%error, "the model server is away after tools have run; asking again");
                self.discard(reader).await?;
                tokio::time::sleep(*pause).await;
                continue;
            }
            let Some(message) = error.message() else { return Err(self.give_up(error, reader).await) };
            if raw.is_none() && remedy.is_none() {
                return Err(self.give_up(error, reader).await);
            }
            if let Some(remedy) = remedy {
                let is_about_tools = matches!(remedy, Remedy::Prompt(_));
                let hint = self.route.kind().filter(|_| is_about_tools).map(|kind| kind.for_tools);
                tracing::warn!(
                    message,
                    hint,
                    ?remedy,
                    "the model server could not do with the request; asking again"
                );
                match remedy {
                    Remedy::Prompt(evidence) => {
                        self.prompt_style = true;
                        self.evidence = Some(evidence);
                    }
                    Remedy::NoConstraint => self.is_unconstrained = true,
                    Remedy::FormInPrompt => self.describe_form(error),
                    Remedy::FewerPictures(limit) => self.picture_limit = limit,
                    Remedy::DeferTools(too_long) => self.defer_tools(too_long),
                    Remedy::Chat => self.is_raw_off = true,
                    Remedy::Otherwise(accepted) => self.accepted = accepted,
                }
                self.discard(reader).await?;
                continue;
            }
            let raw = raw.unwrap_or_default();
            if !asked_again && reader.is_blank() && !self.reads_as_call(raw) {
                // Half a call tells nothing. Asked once more the model mostly writes a whole one.
                tracing::warn!(message, "the model server could not read a call; asking once more");
                asked_again = true;
                self.discard(reader).await?;
                continue;
            }
            let see = format!("toolrack doctor {}", self.route.full_name());
            tracing::warn!(
                message,
                see,
                "the model server could not read a call; it was read from its error"
            );
            let mut events = Vec::new();
            reader.forget_native(&mut events);
            self.send_all(&mut events).await?;
            // A streaming server has sent the beginning already.
            let rest = reader.unread(raw);
            return match self.read(Answer::recovered(rest), &mut reader).await? {
                None => {
                    // Once is enough.
                    reader.unread.take_if(|_| asked_again);
                    Ok(reader)
                }
                Some(error) => Err(self.give_up(error, reader).await),
            };
        }
    }

    /// What helps against an error, if anything does.
    fn remedy(&self, error: &UpstreamError, style: &Style) -> Option<Remedy> {
        let message = error.message()?;
        if let Some(limit) = self.fewer_pictures(message) {
            return Some(Remedy::FewerPictures(limit));
        }
        if let Some(too_long) = self.fits_without_tools(error) {
            return Some(Remedy::DeferTools(too_long));
        }
        if let UpstreamError::Refused { status: 400 | 422 | 500 | 501, .. } = error
            && !matches!(style, Style::Raw(_))
            && let Some(accepted) = self.otherwise(message)
        {
            return Some(Remedy::Otherwise(accepted));
        }
        // llama.cpp may find out in the middle of an answer that it does not fit the grammar.
        let status = if let UpstreamError::Refused { status, .. } = error { *status } else { 500 };
        if style.constraint().is_some() && recover::refuses_constraint(status, message) {
            return Some(Remedy::NoConstraint);
        }
        if let UpstreamError::Refused { status, .. } = error {
            if matches!(style, Style::Raw(_)) && matches!(status, 400 | 404 | 405 | 422 | 500 | 501) {
                return Some(Remedy::Chat);
            }
            if self.may_describe_form() && recover::refuses_constraint(*status, message) {
                return Some(Remedy::FormInPrompt);
            }
            if self.may_use_prompt() && recover::refuses_tools(*status, message) {
                return Some(Remedy::Prompt(Evidence::Refusal));
            }
        }
        if !self.may_use_prompt() {
            return None;
        }
        let breaks_grammar = || match error {
            UpstreamError::Refused { status, .. } => recover::refuses_constraint(*status, message),
            _ => false,
        };
        let fails_at_required = || self.required.is_some() && is_internal(error);
        // It may be about these tools or this one answer.
        let may_be_read = recover::could_not_read(message) || breaks_grammar() || fails_at_required();
        may_be_read.then_some(Remedy::Prompt(Evidence::Unread))
    }

    async fn ask(&mut self, round: Round, style: &Style) -> Result<Answer, UpstreamError> {
        self.request.tools = Vec::new();
        self.request.choice = ToolChoice::Auto;
        self.request.parallel = None;
        let required = self.required.is_some();
        let missing = self.missing();
        let is_reminded = missing > 0 || self.forming.as_ref().is_some_and(Forming::is_in_prompt);
        if !is_reminded && !matches!(style, Style::Raw(_)) {
            self.continue_answer();
        }
        let last_words = self.required.as_ref().map_or("", |required| &required.last_words);
        let functions = || self.offer.functions(round);
        match style {
            Style::Raw(raw) => self.route.ask_raw(&raw.request, &raw.question).await,
            Style::WithoutTools => {
                let mut in_prompt =
                    self.forming.as_ref().and_then(|forming| forming.in_prompt(&self.request));
                if let Some(request) = &mut in_prompt {
                    self.accepted.place_system(&mut request.messages);
                }
                self.route.ask(in_prompt.as_ref().unwrap_or(&self.request), "").await
            }
            Style::Native => {
                self.request.tools = self.offer.client_tools(round);
                if required {
                    self.request.choice = ToolChoice::Required;
                }
                self.request.parallel = self.parallel;
                let definitions = self.offer.definitions(round, self.api);
                if missing == 0 {
                    return self.route.ask(&self.request, &definitions).await;
                }
                let mut request = self.request.clone();
                prompt::remind(&mut request.messages, last_words);
                self.route.ask(&request, &definitions).await
            }
            Style::Prompt(constraint) => {
                let mut request = self.request.clone();
                let constraint = constraint.as_ref();
                if missing > usize::from(constraint.is_some()) {
                    prompt::remind(&mut request.messages, last_words);
                }
                let dialect = constraint.map(|constraint| constraint.dialect).or(self.dialect());
                prompt::describe_tools(&mut request.messages, &functions(), dialect, required);
                self.accepted.place_system(&mut request.messages);
                if let Some(constraint) = constraint {
                    constraint.apply(&mut request);
                }
                self.route.ask(&request, "").await
            }
        }
    }

    fn new_reader(&self, round: Round, style: &Style) -> Reader {
        let max_calls = usize::try_from(self.backend.settings().limits.max_calls).unwrap_or(usize::MAX);
        let scan = self.scan_options(style.dialect(self.dialect()));
        let scan = if let Style::Raw(raw) = style { scan.thinking(raw.question.thinking) } else { scan };
        let options = Options {
            scan,
            stream: self.request.stream,
            one_call: self.parallel == Some(false),
            required: self.required.is_some().then_some(round),
            only_calls: style.constraint().is_some_and(Constraint::leaves_only_calls),
            quiet: self.form.is_some() || self.holds_answer(),
            // One more, which is refused and says so.
            max_calls: max_calls.saturating_add(1),
        };
        Reader::new(Arc::clone(&self.offer), options, history::call_ids(&self.request.messages))
    }

    /// How the model's text is read, in this dialect or in any.
    fn scan_options(&self, only: Option<&str>) -> ScanOptions {
        let settings = self.backend.settings();
        let options = ScanOptions::default().thinking(settings.thinking).parsing(settings.parsing);
        let options = options.deltas(self.request.extension.deltas);
        only.and_then(toolrack_dialects::dialect).into_iter().fold(options, ScanOptions::only)
    }

    /// The one dialect in which the model is read, and its tools are described where that is done in the prompt.
    pub(super) fn dialect(&self) -> Option<&'static str> {
        self.backend.settings().dialect_of(self.request.model.as_deref().unwrap_or_default())
    }

    /// How tools are described to the model.
    pub(super) fn tool_style(&self) -> ToolStyle {
        self.backend.settings().tool_style_of(self.request.model.as_deref().unwrap_or_default())
    }

    /// Whether a text has a call in it.
    fn reads_as_call(&self, text: &str) -> bool {
        !toolrack_dialects::parse(text, Arc::clone(&self.offer.offered), self.scan_options(self.dialect()))
            .calls
            .is_empty()
    }

    fn may_use_prompt(&self) -> bool {
        !self.prompt_style && self.offer.has_tools() && self.tool_style() == ToolStyle::Auto
    }

    /// Reads an answer to its end; an error of the server comes back with what was read before it.
    async fn read(&mut self, mut answer: Answer, reader: &mut Reader) -> Result<Option<UpstreamError>, End> {
        let (mut events, mut pieces) = (self.report_untold(&answer), Vec::new());
        loop {
            let more = answer.next(&mut pieces).await;
            pieces.drain(..).for_each(|piece| reader.take(piece, &mut events));
            self.send_all(&mut events).await?;
            match more {
                Ok(true) if reader.is_full() => break,
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Ok(Some(error)),
            }
        }
        reader.end(&mut events);
        events.extend(self.report_cut(&answer));
        self.send_all(&mut events).await?;
        Ok(None)
    }

    /// Nothing comes of what there is of an answer: its calls are not made, and the next one begins a paragraph.
    fn discard(&mut self, mut reader: Reader) -> BoxFuture<'_, Result<(), End>> {
        async move {
            self.count_usage(&mut reader);
            let mut events = Vec::new();
            reader.forget_native(&mut events);
            reader.break_off(&mut events);
            self.send_all(&mut events).await?;
            runner::give_up(&reader.calls, &self.offer, &self.events).await;
            let mut aborted = self.unsettled.abort("the answer broke off");
            self.send_all(&mut aborted).await?;
            self.paragraphs.part();
            if let Some(required) = &mut self.required {
                required.begin_answer();
            }
            Ok(())
        }
        .boxed()
    }

    /// The answer has broken off: what was held back of it is given out, and its calls are not made.
    fn give_up(&mut self, error: UpstreamError, mut reader: Reader) -> BoxFuture<'_, End> {
        async move {
            let mut events = Vec::new();
            reader.break_off(&mut events);
            if let Err(end) = self.send_all(&mut events).await {
                return end;
            }
            if let Err(end) = self.release().await {
                return end;
            }
            runner::give_up(&reader.calls, &self.offer, &self.events).await;
            End::Upstream(error)
        }
        .boxed()
    }
}

/// Whether the server has failed in itself, as vLLM does at required calls (vllm-project/vllm#49216).
fn is_internal(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Refused { status, .. } => *status == 500,
        UpstreamError::Failed(failure) => failure.kind == FailureKind::Upstream,
        _ => false,
    }
}

/// Whether the server may be back in a moment.
pub(super) fn is_away(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Unreachable { .. } | UpstreamError::Interrupted(_) => true,
        UpstreamError::Refused { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
        UpstreamError::Failed(_)
        | UpstreamError::Stalled(_)
        | UpstreamError::NoModel(_)
        | UpstreamError::AnsweredElsewhere => false,
    }
}
