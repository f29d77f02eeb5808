//! The bridge, from the client's request to the model server's and back: SPEC rows B2, B5, B6 and B7.

mod calls;
mod client_tools;
mod doors;
mod faults;
mod leaving;
mod requests;
#[path = "../support/mod.rs"]
mod support;
