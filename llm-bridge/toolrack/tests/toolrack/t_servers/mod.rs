//! Real processes of the program on free ports, with a real PostgreSQL and Redis between them, killed where it hurts: requirements T3,
//! T5, L3, M2, M3, M7, M10, M12, B10.
//!
//! Where the program of a server is not installed its tests are skipped and say so, unless `TOOLRACK_REQUIRE_SERVERS=1` is set.

mod access;
mod commands;
mod composed;
mod hostile;
mod killed;
mod measured;
mod over_mcp;
mod peer;
mod program;
mod requests;
mod scheduled;
mod seed_modules;
mod shared;
mod started;
mod webhooks;
