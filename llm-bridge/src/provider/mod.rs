//! What is known about each wire API, one file each, both directions.

pub mod names;
pub mod openai;
pub mod sse;
