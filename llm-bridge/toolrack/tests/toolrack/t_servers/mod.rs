//! Real processes of the program on free ports, with a real PostgreSQL and Redis between them, killed where it hurts: requirements T3,
//! T5, L3, M2, M3, M7, M10, M12, B10, B15; rows A19 and G8.
//!
//! `servers.rs` says where the servers come from.

mod access;
mod commands;
mod composed;
mod conversations;
mod hostile;
mod killed;
mod measured;
mod over_mcp;
mod peer;
mod program;
mod requests;
mod scheduled;
mod seed_modules;
#[allow(dead_code)] // of which the tests of the stores use more
#[path = "../../../../../registry-core/stores/tests/stores/servers.rs"]
mod servers;
mod shared;
#[cfg(target_os = "linux")]
mod slow_readers;
mod transcripts;
mod webhooks;
