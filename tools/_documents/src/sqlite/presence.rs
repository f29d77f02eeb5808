//! What is known of a file, without opening it.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::task::spawn_blocking;

use crate::Contents;

/// What was last seen in a file. As long as the file is as it was, it is not opened.
pub(super) struct Presence(Mutex<Known>);

struct Known {
    contents: Contents,
    stamp: Option<Stamp>,
    /// How often something was written here. What was looked up before a write is not believed after it.
    writes: u64,
}

/// Length and time of the file, and of the log that holds what was written last; whichever process has written, one of them changes.
type Stamp = (Option<(u64, SystemTime)>, Option<(u64, SystemTime)>);

impl Presence {
    /// Until it is looked at, a file that is there has all that it can have. What it has not is reported by the tool that is called then.
    pub(super) fn new(file: &Path) -> Self {
        let contents = Contents { documents: file.exists(), graph: file.exists() };
        Self(Mutex::new(Known { contents, stamp: None, writes: 0 }))
    }

    pub(super) fn contents(&self) -> Contents {
        self.0.lock().contents
    }

    /// Notes what was written here.
    pub(super) fn update(&self, change: impl FnOnce(&mut Contents)) {
        let mut known = self.0.lock();
        known.writes += 1;
        change(&mut known.contents);
    }

    pub(super) async fn refresh(&self, file: &Path) {
        let (path, writes) = (file.to_owned(), self.0.lock().writes);
        let Ok(stamp) = spawn_blocking(move || stamp(path)).await else { return };
        if self.0.lock().stamp == Some(stamp) {
            return;
        }
        let seen = if stamp.0.is_some() { look(file).await } else { Ok(Contents::default()) };
        let mut known = self.0.lock();
        if let Some(contents) = seen.ok().filter(|_| known.writes == writes) {
            (known.contents, known.stamp) = (contents, Some(stamp));
        }
    }
}

fn stamp(file: PathBuf) -> Stamp {
    let mut log = file.clone().into_os_string();
    log.push("-wal");
    let of = |file: PathBuf| {
        let about = std::fs::metadata(file).ok()?;
        Some((about.len(), about.modified().ok()?))
    };
    (of(file), of(log.into()))
}

/// Reads it in the file. SQLite works on a thread of its own.
async fn look(file: &Path) -> Result<Contents, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(Duration::ZERO);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let is_made = sqlx::query("SELECT 1 FROM sqlite_schema WHERE name = 'document'");
    if is_made.fetch_optional(&mut connection).await?.is_none() {
        return Ok(Contents::default());
    }
    let (documents, graph) =
        sqlx::query_as("SELECT EXISTS (SELECT 1 FROM document), EXISTS (SELECT 1 FROM entity, extraction)")
            .fetch_one(&mut connection)
            .await?;
    connection.close().await?;
    Ok(Contents { documents, graph })
}
