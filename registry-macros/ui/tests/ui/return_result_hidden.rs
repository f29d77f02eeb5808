use registry_core::prelude::*;

type Result = std::result::Result<String, ToolError>;

/// Says hello.
#[tool]
async fn hello() -> Result {
    Ok(String::new())
}

fn main() {}
