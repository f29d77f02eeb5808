use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(_ctx: ToolContext) -> String {
    String::new()
}

fn main() {}
