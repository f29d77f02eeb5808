//! Whether a file has any document in it.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

/// While documents come, it is not asked more often than this whether they are still there.
const SETTLED: Duration = Duration::from_secs(1);

/// What is known of a file. As long as the file is as it was, it is not opened.
#[derive(Default)]
pub(super) struct Presence(Mutex<Option<Known>>);

#[derive(Clone, Copy)]
struct Known {
    are_there: bool,
    stamp: Stamp,
    asked: Instant,
}

/// Length and time of the file, and of the log that holds what was written last; whichever process has written, one of them changes.
type Stamp = (Option<(u64, SystemTime)>, Option<(u64, SystemTime)>);

impl Presence {
    pub(super) fn ask(&self, file: &Path) -> bool {
        let stamp = stamp(file);
        if stamp.0.is_none() {
            return false;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some(known) if known.stamp == stamp || known.are_there && known.asked.elapsed() < SETTLED => {
                known.are_there
            }
            _ => {
                let seen = look(file);
                *known = seen.map(|are_there| Known { are_there, stamp, asked: Instant::now() });
                // What cannot be read is told by the tool that is called then.
                seen.unwrap_or(true)
            }
        }
    }
}

fn stamp(file: &Path) -> Stamp {
    let of = |file: &Path| {
        let about = std::fs::metadata(file).ok()?;
        Some((about.len(), about.modified().ok()?))
    };
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    (of(file), of(Path::new(&log)))
}

/// Reads it in the file, in a thread of its own: whoever asks cannot wait for a future, nor for others who have locked the file. That takes
/// about a millisecond.
fn look(file: &Path) -> Option<bool> {
    let asked = async {
        let options = SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(Duration::ZERO);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let is_made = sqlx::query("SELECT 1 FROM sqlite_schema WHERE name = 'document'");
        if is_made.fetch_optional(&mut connection).await?.is_none() {
            return Ok(false);
        }
        let found = sqlx::query("SELECT 1 FROM document LIMIT 1").fetch_optional(&mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(found.is_some())
    };
    let look =
        || tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?.block_on(asked).ok();
    std::thread::scope(|scope| scope.spawn(look).join()).ok().flatten()
}
