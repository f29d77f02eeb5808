//! The gate over HTTP and webhooks.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod gate;
mod trusted;
mod webhooks;
