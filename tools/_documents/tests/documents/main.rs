//! Documents: adding, updating, removing, searching, and what a model adds to them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

mod again;
mod embedding;
mod extraction;
mod finding;
mod graph;
mod keeping;
mod migration;
mod place;
mod quality;
mod retrieval;
mod sql;
