use registry_core::prelude::*;

/// Says hello.
#[tool(role = "admin")]
async fn hello() -> String {
    String::new()
}

fn main() {}
