//! A chat backend in front of a local model: reads its tool calls native or as text and runs them.

pub mod chat;
pub mod dialect;
