use registry_core::prelude::*;

/// Says hello.
#[tool(timeout)]
async fn hello() -> String {
    String::new()
}

fn main() {}
