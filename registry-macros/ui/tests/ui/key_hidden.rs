use registry_core::prelude::*;

/// Says hello.
#[tool(missing = |_| None)]
async fn hello() -> String {
    String::new()
}

fn main() {}
