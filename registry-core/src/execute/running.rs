//! Runs code that is not the registry's own so that nothing it does reaches further than one call: no panic, no overrun.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::{
    context::ToolContext,
    guard::cancelled,
    result::{ErrorKind, ToolError, ToolResult},
    tool::{Handler, Tool},
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
    let running = async {
        tokio::select! {
            biased;
            // The handler's first step is inside as well.
            result = watched(tool, caught(async move { handler.call(context, arguments).await })) => {
                result.unwrap_or_else(|panic| Err(panicked(&panic)))
            }
            () = context.cancelled() => Err(cancelled()),
        }
    };
    within(timeout, started, running).await.unwrap_or_else(|| Err(ToolError::timed_out(timeout)))
}

/// How long a tool may hold its thread without giving it back, before the log says so.
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// What the future comes to. A step of it that holds the thread for long is logged: meanwhile nothing else runs there, and neither
/// timeout nor cancellation can reach the tool.
async fn watched<T>(tool: &Tool, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
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

/// What the future comes to; `None` where it is not done so long after it was started.
pub(crate) async fn within<T>(
    limit: Duration,
    started: Instant,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    // Most are done at once, and need no timer.
    if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Some(done);
    }
    match started.checked_add(limit) {
        Some(end) => timeout_at(end, future).await.ok(),
        None => Some(future.await),
    }
}

/// What the future comes to, or the text of its panic.
pub(crate) async fn caught<T>(future: impl Future<Output = T> + Send) -> Result<T, String> {
    let mut running = pin!(future);
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(text_of(panic.as_ref()))),
    })
    .await
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

fn panicked(text: &str) -> ToolError {
    ToolError::new(ErrorKind::Panicked, format!("the tool panicked: {text}"))
        .with_feedback("The tool failed with a fault of its own. Do not call it again with these arguments.")
}
