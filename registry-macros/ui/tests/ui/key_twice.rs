use registry_core::prelude::*;

/// Says hello.
#[tool(gate, timeout = secs(1), gate = false)]
async fn hello() -> String {
    String::new()
}

fn main() {}
