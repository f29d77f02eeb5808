use registry_core::prelude::*;

/// Says hello.
#[tool(version = "1.0")]
async fn hello() -> String {
    String::new()
}

fn main() {}
