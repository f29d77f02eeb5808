//! Files of SQLite.

use std::{fs::File, io::Read, path::Path, time::Duration};

use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::sql::failure;
use registry_core::store::StoreError;

/// How long to wait for others who write to a file.
const BUSY: Duration = Duration::from_secs(5);

/// Whether a file is one of SQLite's, by its first bytes: <https://sqlite.org/fileformat.html>. False where it cannot be read.
pub fn is_sqlite(file: &Path) -> bool {
    let mut start = [0; 16];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"SQLite format 3\0"
}

/// Copies a SQLite file as of one moment, while others may write to it. The copy has nothing of deleted rows. `to` must not exist.
///
/// # Errors
/// Names the file: when it cannot be read, or the copy cannot be written.
pub async fn copy_sqlite(from: &Path, to: &Path) -> Result<(), StoreError> {
    let copied = async {
        let options =
            SqliteConnectOptions::new().filename(from).busy_timeout(BUSY).disable_statement_logging();
        let mut connection = SqliteConnection::connect_with(&options).await?;
        sqlx::query("VACUUM INTO $1").bind(to.to_string_lossy().as_ref()).execute(&mut connection).await?;
        connection.close().await
    };
    copied.await.map_err(|error| failure(error).of(from.display().to_string()))
}

/// A file that nobody else has open, or can open while this is held.
#[derive(Debug)]
#[must_use]
pub struct LockedSqlite(SqliteConnection);

impl LockedSqlite {
    /// Lets others open the file again. By then all that was committed is in it, and none of the files beside it is left.
    pub async fn release(self) {
        // What cannot be closed is not open.
        let _ = self.0.close().await;
    }
}

/// Locks a SQLite file against all others; `None` where another process or connection has it open.
///
/// # Errors
/// Names the file: when it cannot be read.
pub async fn lock_sqlite(file: &Path) -> Result<Option<LockedSqlite>, StoreError> {
    let locked = async {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .busy_timeout(Duration::ZERO)
            .disable_statement_logging()
            .pragma("locking_mode", "EXCLUSIVE");
        let mut connection = SqliteConnection::connect_with(&options).await?;
        sqlx::raw_sql("BEGIN EXCLUSIVE; COMMIT").execute(&mut connection).await?;
        Ok(connection)
    };
    match locked.await {
        Ok(connection) => Ok(Some(LockedSqlite(connection))),
        Err(error) if crate::sqlite::is_busy(&error) => Ok(None),
        Err(error) => Err(failure(error).of(file.display().to_string())),
    }
}
