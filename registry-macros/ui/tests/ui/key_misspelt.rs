use registry_core::prelude::*;

/// Says hello.
#[tool(timeot = secs(10))]
async fn hello() -> String {
    String::new()
}

fn main() {}
