//! How many files may be open, and how many connections that leaves room for.

use crate::server::MAX_CONNECTIONS;

/// How many open files the program asks the system for.
const WANTED_FILES: u64 = 4 * 4096;

/// How many connections there may be where so many files can be open; tools and stores need some too.
pub(super) fn most_connections() -> usize {
    usize::try_from(open_files() / 2).unwrap_or(MAX_CONNECTIONS).clamp(16, MAX_CONNECTIONS)
}

/// How many files this program may have open, as many as the system lets it have: often 1024 where nobody has asked for more.
#[cfg(unix)]
fn open_files() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let wanted = limit.maximum.map_or(WANTED_FILES, |most| most.min(WANTED_FILES));
    if limit.current.is_some_and(|now| now < wanted) {
        limit.current = Some(wanted);
        if let Err(cause) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%cause, "open_files_not_raised");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(WANTED_FILES)
}

#[cfg(not(unix))]
fn open_files() -> u64 {
    WANTED_FILES
}
