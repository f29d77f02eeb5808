use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(#[arg(default = 1)] _ctx: &ToolContext) -> String {
    String::new()
}

fn main() {}
