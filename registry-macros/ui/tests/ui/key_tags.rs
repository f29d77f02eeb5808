use registry_core::prelude::*;

/// Says hello.
#[tool(tags = [1])]
async fn hello() -> String {
    String::new()
}

fn main() {}
