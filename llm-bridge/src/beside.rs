//! Work beside the runtime: whoever chooses its size must not hold up what waits on the runtime's threads.

use tokio::task::spawn_blocking;

/// What has no more bytes is done at once.
pub(crate) const SMALL: usize = 256 * 1024;

/// Does something with so many bytes, beside the runtime where they are many; `None` where it is going down.
pub(crate) async fn beside<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match size <= SMALL {
        true => Some(work()),
        false => spawn_blocking(work).await.ok(),
    }
}
