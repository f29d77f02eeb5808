//! What stands around a call.

pub mod audit;
