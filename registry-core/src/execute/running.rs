//! Runs code that is not the registry's own so that nothing it does reaches further than one call: no panic, no overrun.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Poll, ready},
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{task::coop::unconstrained, time::Instant};

use crate::{
    context::{Pauses, ToolContext},
    future::caught,
    handler::Handler,
    result::{ErrorKind, ToolError, ToolResult},
    tool::Tool,
};

/// Runs a tool that was started then, until it is done, cancelled or out of time.
pub(super) async fn guarded(
    handler: &dyn Handler,
    context: &ToolContext,
    arguments: Map<String, Value>,
    started: Instant,
    tool: &Tool,
) -> Result<ToolResult, ToolError> {
    let timeout = tool.policy().timeout;
    // The handler's first step is inside as well.
    let acting = pin!(async move { handler.call(context, arguments).await });
    let mut acting = pin!(caught(acting));
    let running = pin!(async {
        tokio::select! {
            biased;
            result = watched(tool, acting.as_mut()) => result.unwrap_or_else(|panic| Err(panicked(&panic))),
            () = context.cancelled() => {
                if let Some(call) = context.running() {
                    call.asking.stop();
                }
                Err(ToolError::cancelled())
            }
        }
    });
    within_unpaused(timeout, started, running, context.running().map(|call| &call.pauses))
        .await
        .unwrap_or_else(|| Err(ToolError::timed_out(timeout)))
}

/// What the future comes to; `None` where it is not done so long after it was started, without the time in which it stood.
async fn within_unpaused<T>(
    limit: Duration,
    started: Instant,
    mut future: Pin<&mut impl Future<Output = T>>,
    pauses: Option<&Pauses>,
) -> Option<T> {
    let before = pauses.map(Pauses::total).unwrap_or_default();
    // Most are done at once, and need no timer.
    if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Some(done);
    }
    let Some(end) = started.checked_add(limit) else { return Some(future.await) };
    let mut timer = pin!(tokio::time::sleep_until(end));
    poll_fn(|cx| {
        if let Poll::Ready(done) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        let total = match pauses {
            Some(pauses) => ready!(pauses.poll_total(cx)),
            None => before,
        };
        let Some(end) = end.checked_add(total.saturating_sub(before)) else { return Poll::Pending };
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        // Also where a tool that is always ready has left nothing of the budget of this poll.
        pin!(unconstrained(timer.as_mut())).poll(cx).map(|()| None)
    })
    .await
}

/// How long a tool may hold its thread without giving it back, before the log says so.
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// What the future comes to. A step of it that holds the thread for long is logged: meanwhile nothing else runs there, and neither
/// timeout nor cancellation can reach the tool.
async fn watched<T>(tool: &Tool, mut future: Pin<&mut impl Future<Output = T>>) -> T {
    poll_fn(|cx| {
        let since = std::time::Instant::now();
        let poll = future.as_mut().poll(cx);
        let held = since.elapsed();
        if held > LONGEST_POLL {
            let (tool, seconds) = (tool.name(), held.as_secs_f64());
            tracing::warn!(
                tool,
                seconds,
                "tool_blocks: it computes in an `async fn`; write a plain `fn` instead"
            );
        }
        poll
    })
    .await
}

fn panicked(text: &str) -> ToolError {
    ToolError::new(ErrorKind::Panicked, format!("the tool panicked: {text}"))
        .with_feedback("The tool failed with a fault of its own. Do not call it again with these arguments.")
}
