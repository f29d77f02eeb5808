//! Modules over HTTP and servers of the Model Context Protocol, as sources of tools.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod log;
mod mcp;
mod modules;
