use registry_core::prelude::*;

/// Says hello.
#[tool]
fn hello() -> String {
    String::new()
}

fn main() {}
