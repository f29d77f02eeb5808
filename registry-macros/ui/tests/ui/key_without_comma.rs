use registry_core::prelude::*;

/// Says hello.
#[tool(gate timeout = secs(10))]
async fn hello() -> String {
    String::new()
}

fn main() {}
