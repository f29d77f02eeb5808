use registry_core::prelude::*;

/// Says hello.
#[tool(enabled = |ctx| ctx.caller().levl > Permission::Guest)]
async fn hello() -> String {
    String::new()
}

fn main() {}
