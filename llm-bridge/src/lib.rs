//! A chat backend in front of a local model: reads its tool calls, native or as text, and runs them.
//!
//! [`turn::Backend`] conducts a conversation between a client, a model server and a [`Registry`](registry_core::Registry) of
//! tools. [`server`] puts the APIs that clients speak before it. With the feature `cli`, [`cli::main`] is a whole program around a registry.

mod append;
mod beside;
mod build;
mod checking;
#[cfg(feature = "cli")]
pub mod cli;
mod definition;
mod identifier;
pub mod listing;
mod logged;
pub mod mcp;
pub mod metrics;
mod personas;
mod recorded;
mod registering;
mod removal;
pub mod server;
pub mod sign_in;
#[cfg_attr(
    not(all(unix, feature = "cli")),
    expect(dead_code, reason = "without a supervisor no program has a place among others")
)]
mod takeover;
pub mod traces;
pub mod turn;
pub mod upstream;
mod woken;
mod written;

pub use definition::{snapshot, subject};

/// The code of pages of the book. Those about the published crates are here as well, because a package has no file that is beside its folder.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../docs/apis.md")]
    struct Apis;

    #[doc = include_str!("../../docs/axum.md")]
    struct Axum;

    #[doc = include_str!("../../docs/dialects.md")]
    struct Dialects;

    #[cfg(feature = "cli")]
    #[doc = include_str!("../../docs/embedding.md")]
    struct Embedding;

    #[doc = include_str!("../../docs/parsing-options.md")]
    struct ParsingOptions;

    #[doc = include_str!("../../docs/providers.md")]
    struct Providers;

    #[doc = include_str!("../../docs/rust.md")]
    struct Rust;
}
