use registry_core::prelude::*;

/// Draws the weather.
#[tool]
async fn draw() -> Vec<u8> {
    Vec::new()
}

/// Draws the weather, if it can.
#[tool]
async fn try_to_draw() -> Result<Vec<u8>, ToolError> {
    Ok(Vec::new())
}

fn main() {}
