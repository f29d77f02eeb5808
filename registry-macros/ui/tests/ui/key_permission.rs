use registry_core::prelude::*;

/// Says hello.
#[tool(permission = "admin")]
async fn hello() -> String {
    String::new()
}

fn main() {}
