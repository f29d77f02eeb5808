use registry_core::prelude::*;

/// Says hello.
#[tool(permission = Permission::User, effect = Effect::Wrte)]
async fn hello() -> String {
    String::new()
}

fn main() {}
