//! Asks the model, and reads its answer.

use std::sync::Arc;

use serde_json::{Value, json};
use toolrack_apis::openai::Object;
use toolrack_dialects::ScanOptions;

use super::{End, Run};
use crate::chat::{
    ToolStyle, answer::Answer, prompt, reader::Reader, recover, runner, upstream::UpstreamError,
};

impl Run {
    /// Asks the model and reads its answer.
    ///
    /// A server that refuses tools is asked again with the tools in the prompt. That is remembered for the model only after it has
    /// worked: the error may have been about something else in this one request.
    pub(super) async fn read_answer(&mut self, round: u32) -> Result<Reader, End> {
        let had_prompt_style = self.prompt_style;
        let reader = self.ask_until_read(round).await?;
        if self.prompt_style && !had_prompt_style {
            let model = self.model.as_deref().unwrap_or_default();
            tracing::warn!(
                model,
                "the model server takes no tools; from now on they are described in the prompt"
            );
            self.backend.set_refuses_tools(model);
        }
        Ok(reader)
    }

    /// Asks until there is an answer. What a server could not parse itself is taken from its error and parsed here.
    async fn ask_until_read(&mut self, round: u32) -> Result<Reader, End> {
        let mut asked_again = false;
        loop {
            let mut reader = self.new_reader();
            let tools = if self.prompt_style { None } else { self.offer.definitions(round) };
            let error = match self.backend.upstream().ask(&self.request(round), tools.as_deref()).await {
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
                    "the model server refused tools; trying with the tools in the prompt"
                );
                self.prompt_style = true;
                continue;
            }
            let Some(raw) = raw else { return Err(End::Upstream(error)) };
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
            parsing: settings.parsing,
            deltas: self.deltas,
            only: self.dialect(),
            ..ScanOptions::default()
        }
    }

    /// The one dialect in which the model is read, and its tools are described where that is done in the prompt.
    fn dialect(&self) -> Option<&'static str> {
        self.backend.settings().dialect_of(self.model.as_deref().unwrap_or_default())
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
        prompt::add_system_prompt(&mut messages, prompt, &self.offer.tag_lines);
        if self.offer.has_tools() {
            // A call was asked for and made; asked for again there would be no end to it.
            let choice = self.offer.choice.as_ref().filter(|_| round == 1);
            if self.prompt_style {
                request.shift_remove("parallel_tool_calls");
                let definitions = self.offer.definitions_told(round).unwrap_or_default();
                prompt::tell_tools(&mut messages, &definitions, self.dialect(), choice.is_some());
            } else if let Some(choice) = choice {
                request.insert("tool_choice".into(), choice.clone());
            }
        }
        request.insert("messages".into(), messages.into());
        request
    }
}

fn recoverable(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Failed(message) if recover::raw_text(message).is_some())
}
