//! Making the file, and waiting for others who have locked it.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    time::Duration,
};

use tokio::time::{Instant, sleep};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes the folder where there is none, for nobody else to look into.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes the file where there is none, for nobody else to read; the files beside it become like it.
pub(super) fn private_file(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}

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
