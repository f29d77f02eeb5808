//! The bridge, from the client's request to the model server's and back: requirements B2, B5, B6 and B7.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]

mod calls;
mod client_tools;
mod deferred;
mod deltas;
mod dialects;
mod doors;
mod faults;
mod leaving;
mod messages;
mod oddities;
mod recovery;
mod requests;
#[path = "../support/mod.rs"]
mod support;
