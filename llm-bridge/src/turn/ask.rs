//! Asks the model, and reads its answer.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use toolrack_apis::{Request, ToolChoice};
use toolrack_dialects::ScanOptions;

use super::{
    ToolStyle, history,
    offer::Round,
    prompt,
    reader::{Options, Reader},
    recover,
    run::{End, Run},
    runner,
};
use crate::upstream::{Answer, UpstreamError};

/// How long to wait before a model server is asked again that was away, where tools have run already and the client cannot ask again.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

impl Run {
    /// Asks the model and reads its answer.
    ///
    /// A server that refuses tools is asked again with the tools in the prompt. That is remembered for the model only after it has
    /// worked: the error may have been about something else in this one request.
    pub(super) async fn read_answer(&mut self, number: u32) -> Result<Reader, End> {
        let had_prompt_style = self.prompt_style;
        let reader = self.ask_until_read(self.round(number)).await?;
        if self.prompt_style && !had_prompt_style {
            let model = self.route.full_name();
            tracing::warn!(
                model,
                "the model server takes no tools; from now on they are described in the prompt"
            );
            self.backend.set_refuses_tools(model);
        }
        Ok(reader)
    }

    /// Asks until there is an answer. What a server could not parse itself is taken from its error and parsed here.
    async fn ask_until_read(&mut self, round: Round) -> Result<Reader, End> {
        let mut asked_again = false;
        let mut pauses = if self.has_run_tools { PAUSES.as_slice() } else { &[] }.iter();
        loop {
            let mut reader = self.new_reader();
            let error = match Box::pin(self.ask(round)).await {
                Ok(answer) => match self.read(answer, &mut reader).await? {
                    None => return Ok(reader),
                    Some(error) => error,
                },
                Err(error) => error,
            };
            let raw = error.message().and_then(recover::raw_text);
            let takes_no_tools = match &error {
                UpstreamError::Refused { status, failure } => {
                    raw.is_none()
                        && self.may_use_prompt()
                        && recover::refuses_tools(*status, &failure.message)
                }
                _ => false,
            };
            // What the model has written, and what this server can be helped with, is not asked of another.
            if !reader.has_begun() && raw.is_none() && !takes_no_tools && self.fall_back(&error) {
                continue;
            }
            if is_away(&error)
                && reader.is_blank()
                && let Some(pause) = pauses.next()
            {
                tracing::warn!(%error, "the model server is away after tools have run; asking again");
                tokio::time::sleep(*pause).await;
                continue;
            }
            let Some(message) = error.message() else { return Err(self.give_up(error, reader).await) };
            if takes_no_tools {
                tracing::warn!(
                    message,
                    hint = self.route.for_tools(),
                    "the model server refused tools; trying with the tools in the prompt"
                );
                self.prompt_style = true;
                continue;
            }
            let Some(raw) = raw else { return Err(self.give_up(error, reader).await) };
            let mut events = Vec::new();
            reader.forget_native(&mut events);
            self.send_all(&mut events).await?;
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
                Some(error) => Err(self.give_up(error, reader).await),
            };
        }
    }

    async fn ask(&mut self, round: Round) -> Result<Answer, UpstreamError> {
        self.request.tools = Vec::new();
        self.request.choice = ToolChoice::Auto;
        self.request.parallel = None;
        self.api = self.route.api().await;
        let asks_for_form = self.request.format.is_some() && self.offer.has_server_tools();
        if !self.offer.has_tools() || asks_for_form {
            return self.route.ask(&self.request, "").await;
        }
        if self.prompt_style {
            return self.route.ask(&self.in_prompt_style(round), "").await;
        }
        self.request.tools = self.offer.client_tools(round);
        if self.offer.requires_call(round) {
            self.request.choice = ToolChoice::Required;
        }
        self.request.parallel = self.parallel;
        let definitions = self.offer.definitions(round, self.api);
        self.route.ask(&self.request, &definitions).await
    }

    /// The request with the tools, calls and results in words.
    fn in_prompt_style(&self, round: Round) -> Request {
        let mut request = self.request.clone();
        let functions = self.offer.functions(round);
        let required = self.offer.requires_call(round);
        prompt::describe_tools(&mut request.messages, &functions, self.dialect(), required);
        request
    }

    fn new_reader(&self) -> Reader {
        let max_calls = usize::try_from(self.backend.settings().limits.max_calls).unwrap_or(usize::MAX);
        let options = Options {
            scan: self.scan_options(),
            stream: self.request.stream,
            one_call: self.parallel == Some(false),
            quiet: self.form.is_some(),
            // One more, which is refused and says so.
            max_calls: max_calls.saturating_add(1),
        };
        Reader::new(Arc::clone(&self.offer), options, history::call_ids(&self.request.messages))
    }

    fn scan_options(&self) -> ScanOptions {
        let settings = self.backend.settings();
        ScanOptions {
            thinking: settings.thinking,
            parsing: settings.parsing,
            deltas: self.request.extension.deltas,
            only: self.dialect(),
            ..ScanOptions::default()
        }
    }

    /// The one dialect in which the model is read, and its tools are described where that is done in the prompt.
    fn dialect(&self) -> Option<&'static str> {
        self.backend.settings().dialect_of(self.request.model.as_deref().unwrap_or_default())
    }

    /// Whether a text has a call in it.
    fn reads_as_call(&self, text: &str) -> bool {
        !toolrack_dialects::parse(text, Arc::clone(&self.offer.offered), self.scan_options()).calls.is_empty()
    }

    fn may_use_prompt(&self) -> bool {
        !self.prompt_style && self.offer.has_tools() && self.backend.settings().tool_style == ToolStyle::Auto
    }

    /// Reads an answer to its end; an error of the server comes back with what was read before it.
    async fn read(&mut self, mut answer: Answer, reader: &mut Reader) -> Result<Option<UpstreamError>, End> {
        let (mut events, mut pieces) = (Vec::new(), Vec::new());
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
        self.send_all(&mut events).await?;
        Ok(None)
    }

    /// The answer has broken off: what was held back of it is given out, and its calls are not made.
    fn give_up(&mut self, error: UpstreamError, mut reader: Reader) -> BoxFuture<'_, End> {
        async move {
            let mut events = Vec::new();
            reader.break_off(&mut events);
            if let Err(end) = self.send_all(&mut events).await {
                return end;
            }
            runner::give_up(&reader.calls, &self.offer, &self.events).await;
            End::Upstream(error)
        }
        .boxed()
    }
}

/// Whether the server may be back in a moment.
fn is_away(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Unreachable { .. } | UpstreamError::Interrupted(_) => true,
        UpstreamError::Refused { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
        UpstreamError::Failed(_) | UpstreamError::Stalled(_) | UpstreamError::NoModel(_) => false,
    }
}
