//! The formats of APIs: definitions as providers take them (C5, B4), requests and answers.

#![allow(unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod anthropic;
mod arbitrary;
mod benchmark;
mod bounds;
#[allow(dead_code)] // the scanner's tests use more of it
#[path = "../../../dialects/tests/dialects/cases.rs"]
mod cases;
mod chat;
mod checker;
mod definitions;
mod forged;
mod gemini;
mod hostile;
mod lowering;
mod namespaces;
mod ollama;
mod responses;
mod results;
mod settings;
mod stored;
mod strategies;
mod support;
