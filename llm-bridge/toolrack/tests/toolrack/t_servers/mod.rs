//! Real processes of the program on free ports, with a real PostgreSQL and Redis between them, killed where it hurts: requirements T3,
//! T5, L3, M2, M3, M7, M10, M12, B10, B15, B21; rows A19 and G8.
//!
//! `servers.rs` says where the servers come from.

mod access;
mod backup;
mod chats;
mod commands;
mod composed;
mod conversations;
mod erasure;
mod files;
mod first_version;
mod hostile;
mod killed;
mod measured;
mod outage;
mod over_mcp;
mod peer;
pub(crate) mod program;
#[cfg(target_os = "linux")]
mod reload;
mod requests;
mod restore;
mod scheduled;
mod seed_modules;
#[allow(dead_code)] // of which the tests of the stores use more
#[path = "../../../../../registry-core/stores/tests/stores/servers.rs"]
mod servers;
mod shared;
mod signed_heads;
#[cfg(target_os = "linux")]
mod slow_readers;
#[cfg(unix)]
mod stopping;
mod transcripts;
mod webhooks;
