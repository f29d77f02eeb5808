use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello() -> String {
    let words = "hello" "world";
    String::new()
}

fn main() {}
