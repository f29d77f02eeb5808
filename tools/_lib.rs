//! The tools that come with Toolrack.
//!
//! A file here is a tool, a folder is a module of tools; both are found by themselves. What begins with `_` is internal.

registry_core::discover!();

#[path = "_arithmetic.rs"]
mod arithmetic;
#[path = "_number.rs"]
mod number;
