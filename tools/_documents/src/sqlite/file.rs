//! Waits for others who have locked the file.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Tries again while others have locked the file, for so long. While another makes a new file, SQLite does not wait by itself.
pub(super) async fn retry_busy<T, F>(patience: Duration, run: impl Fn() -> F) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let began = Instant::now();
    loop {
        match run().await {
            Err(error) if is_busy(&error) && began.elapsed() < patience => sleep(PAUSE).await,
            ended => return ended,
        }
    }
}

/// SQLITE_BUSY and what it is in particular: https://sqlite.org/rescode.html
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|fault| fault.code()?.parse().ok());
    code.is_some_and(|code: u32| code & 0xff == 5)
}
