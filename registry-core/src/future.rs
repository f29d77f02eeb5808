//! Futures: boxed, bounded in time, and kept from unwinding further than their own call. Those given by reference stay where they are,
//! as each layer that took one by value would copy it twice.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, timeout_at};

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Boxes the future of a handler, which is sent between threads.
pub fn boxed<'a, F: Future + Send + 'a>(future: F) -> BoxFuture<'a, F::Output> {
    Box::pin(future)
}

/// What the future comes to; `None` where it is not done so long after it was started.
pub(crate) async fn within<T>(
    limit: Duration,
    started: Instant,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
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
pub(crate) async fn caught<T>(mut future: Pin<&mut (impl Future<Output = T> + Send)>) -> Result<T, String> {
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(text_of(panic.as_ref()))),
    })
    .await
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
