use registry_core::prelude::*;

/// Says hello.
#[tool(title = " ")]
async fn hello() -> String {
    String::new()
}

fn main() {}
