use registry_core::prelude::*;

/// Says hello.
#[tool(text_tag = "Hello:")]
async fn hello() -> String {
    String::new()
}

fn main() {}
