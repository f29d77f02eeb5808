//! The spans of a turn and of its requests to the model.

use registry_core::{
    model::ModelAnswer,
    trace::{Span, SpanKind, Trace},
};
use serde_json::json;
use toolrack_apis::{FinishReason, Request, Usage};

use super::{Backend, reader::Reader, run::End};
use crate::upstream::{Route, UpstreamError};

/// Begins the span of a turn, and has all that the turn does stand in it.
pub(super) fn turn(backend: &mut Backend, request: &Request) -> Option<Span> {
    let mut span = backend.trace.as_ref()?.span(SpanKind::Internal, "invoke_agent toolrack")?;
    span.set("gen_ai.operation.name", "invoke_agent");
    span.set("gen_ai.agent.name", "toolrack");
    if let Some(model) = &request.model {
        span.set("gen_ai.request.model", model.as_str());
    }
    if let Some(chat) = &request.extension.chat_id {
        span.set("gen_ai.conversation.id", chat.as_str());
    }
    span.set("toolrack.tenant", backend.registry().tenant());
    backend.trace = span.within();
    Some(span)
}

/// Says how a turn has ended.
pub(super) fn turn_ended(span: &mut Span, end: &End, usage: &Usage) {
    set_usage(span, usage);
    match end {
        End::Answered { reason } => set_reason(span, reason),
        End::Limit(reached) => span.fail("limit", reached.message()),
        End::Upstream(error) => fail(span, error),
        End::Stopped | End::Gone => span.fail("cancelled", ""),
    }
}

/// Begins the span of a request to the model.
pub(crate) fn chat(trace: Option<&Trace>, route: &Route) -> Option<Span> {
    let model = route.full_name();
    let mut span = trace?.span(SpanKind::Client, format!("chat {model}"))?;
    span.set("gen_ai.operation.name", "chat");
    span.set("gen_ai.request.model", model);
    span.set("gen_ai.provider.name", route.kind().map_or("unknown", |kind| kind.id));
    Some(span)
}

/// Says how a request to the model has ended.
pub(super) fn chat_ended(span: &mut Span, reader: &Reader, error: Option<&UpstreamError>) {
    if let Some(usage) = &reader.usage {
        set_usage(span, usage);
    }
    if let Some(reason) = &reader.finish {
        set_reason(span, reason);
    }
    if let Some(error) = error {
        fail(span, error);
    }
    set_text(span, &reader.text);
}

/// Says how a tool's question to the model has ended.
pub(crate) fn question_ended(span: &mut Span, answer: &Result<ModelAnswer, UpstreamError>) {
    match answer {
        Ok(answer) => {
            set_usage(
                span,
                &Usage { input: answer.input_tokens, output: answer.output_tokens, ..Usage::default() },
            );
            set_reason(span, if answer.truncated { &FinishReason::Length } else { &FinishReason::Stop });
            set_text(span, &answer.text);
        }
        Err(error) => fail(span, error),
    }
}

/// Says what has gone wrong. The words of the model server quote what it was sent, or what the model has said.
fn fail(span: &mut Span, error: &UpstreamError) {
    let message = match error {
        UpstreamError::Refused { status, .. } if !has_content(span) => {
            format!("the model server answered {status}")
        }
        UpstreamError::Failed(_) if !has_content(span) => String::new(),
        error => error.to_string(),
    };
    span.fail(kind_of(error), message);
}

/// Whether what was said is to be in spans.
fn has_content(span: &Span) -> bool {
    span.within().is_some_and(|trace| trace.has_content())
}

/// What the model has said, where that is to be in spans.
fn set_text(span: &mut Span, text: &str) {
    if has_content(span) && !text.is_empty() {
        let part = json!({"type": "text", "content": text});
        span.set("gen_ai.output.messages", json!([{"role": "assistant", "parts": [part]}]).to_string());
    }
}

fn set_usage(span: &mut Span, usage: &Usage) {
    if usage.total() > 0 {
        span.set("gen_ai.usage.input_tokens", usage.input);
        span.set("gen_ai.usage.output_tokens", usage.output);
    }
}

fn set_reason(span: &mut Span, reason: &FinishReason) {
    span.set("gen_ai.response.finish_reasons", json!([reason.as_str()]));
}

fn kind_of(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Unreachable { .. } => "unreachable",
        UpstreamError::Refused { .. } => "refused",
        UpstreamError::Stalled(_) => "stalled",
        UpstreamError::Failed(_) => "failed",
        UpstreamError::Interrupted(_) => "interrupted",
        UpstreamError::NoModel(_) => "no_model",
        UpstreamError::AnsweredElsewhere => "answered_elsewhere",
    }
}
