//! The program as a whole, and the tools that come with it in whole turns.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]

mod b_mcp_servers;
mod c_cli;
mod c_doctor;
#[cfg(unix)]
mod c_launch;
mod c_providers;
mod c_try;
mod p_deep_analysis;
mod p_documents_cli;
mod p_documents_embeddings;
mod parsing_options;
#[path = "../../../tests/bridge/support/mod.rs"]
mod support;
#[cfg(unix)]
mod t_attacks;
#[cfg(target_os = "linux")]
mod t_code_executor;
mod t_four_tools;
mod t_servers;
