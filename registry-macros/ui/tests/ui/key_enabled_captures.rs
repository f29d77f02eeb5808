use registry_core::prelude::*;

/// Says hello.
#[tool(enabled = |ctx| ctx.caller().user)]
async fn hello() -> String {
    String::new()
}

fn main() {}
