//! The span of a call.

use std::borrow::Cow;

use crate::{
    context::{ToolCall, ToolContext},
    outcome::ToolOutcome,
    schema::without_secrets,
    tool::Tool,
    trace::{Span, SpanKind},
};

/// The span of a call. Where the call is dropped before its end, it says so.
pub(super) struct CallSpan(Option<Span>);

impl Drop for CallSpan {
    fn drop(&mut self) {
        if let Some(span) = &mut self.0 {
            span.fail("cancelled", "");
        }
    }
}

/// Begins the span of a call and has what the call asks of others stand in it; `None` where nobody traces.
pub(super) fn begin(
    context: &mut Cow<'_, ToolContext>,
    tool: Option<&Tool>,
    call: &ToolCall,
) -> Option<CallSpan> {
    let trace = context.trace()?;
    let with_content = trace.has_content();
    // Names of no tool are what a model or a client wrote, of any length.
    let name = tool.map_or("unknown", Tool::name);
    let mut span = trace.span(SpanKind::Internal, format!("execute_tool {name}"))?;
    span.set("gen_ai.operation.name", "execute_tool");
    span.set("gen_ai.tool.name", name);
    span.set("gen_ai.tool.type", "function");
    span.set("gen_ai.tool.call.id", call.id.as_str());
    if let (true, Some(tool), Some(arguments)) = (with_content, tool, call.arguments.as_object()) {
        let shown = without_secrets(&tool.spec().input_schema, arguments);
        span.set("gen_ai.tool.call.arguments", shown.to_string());
    }
    if let Some(within) = span.within() {
        context.to_mut().set_trace(within);
    }
    Some(CallSpan(Some(span)))
}

impl CallSpan {
    /// Says how the call ended.
    pub(super) fn end(mut self, outcome: &ToolOutcome) {
        let Some(mut span) = self.0.take() else { return };
        match &outcome.result {
            Ok(result) if result.success => {}
            Ok(_) => span.fail("unsuccessful", ""),
            Err(error) => span.fail(error.kind().into(), ""),
        }
        if span.within().is_some_and(|trace| trace.has_content()) {
            span.set("gen_ai.tool.call.result", outcome.for_model());
        }
    }
}
