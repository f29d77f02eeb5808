//! What the scanner makes of model output: requirements B1, P7, P8.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod arguments;
mod cases;
mod common;
mod corpus;
mod false_calls;
mod forms;
mod not_calls;
mod parse_options;
mod properties;
mod rows;
mod text_calls;
