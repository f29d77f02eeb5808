use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello() -> impl Into<String> {
    "hello"
}

fn main() {}
