use registry_core::prelude::*;

/// Says hello.
#[tool]
struct Hello;

fn main() {}
