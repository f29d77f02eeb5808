//! What belongs around the chats of five APIs: lists of models, what is passed on, counts, kept conversations.

mod models;
mod ollama;
mod passed;
