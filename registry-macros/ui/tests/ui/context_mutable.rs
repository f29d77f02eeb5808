use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(_ctx: &mut ToolContext) -> String {
    String::new()
}

fn main() {}
