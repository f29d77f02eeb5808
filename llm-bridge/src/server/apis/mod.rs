//! The APIs of models that clients speak: chats, models, and what is passed on.

pub(super) mod answering;
pub(super) mod chat;
pub(super) mod conversations;
pub(super) mod counts;
pub(super) mod fronts;
pub(super) mod gemini;
pub(super) mod models;
pub(super) mod ollama;
pub(super) mod passed;
pub(super) mod responses;
