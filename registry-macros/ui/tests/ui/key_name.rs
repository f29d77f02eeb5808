use registry_core::prelude::*;

/// Says hello.
#[tool(name = "say-hello")]
async fn hello() -> String {
    String::new()
}

fn main() {}
