//! The chat: one turn with a model, and the demo model for when there is none.

pub mod demo;
