use registry_core::prelude::*;

/// Says hello.
#[tool(effect = Effect::Wrte)]
async fn hello() -> String {
    String::new()
}

fn main() {}
