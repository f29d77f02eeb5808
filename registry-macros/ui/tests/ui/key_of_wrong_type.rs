use registry_core::prelude::*;

/// Says hello.
#[tool(timeout = 10)]
async fn hello() -> String {
    String::new()
}

fn main() {}
