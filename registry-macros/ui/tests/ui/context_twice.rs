use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(_a: &ToolContext, _b: &ToolContext) -> String {
    String::new()
}

fn main() {}
