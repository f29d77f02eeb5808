use registry_core::prelude::*;

#[tool(description = "Adds one to a number.")]
async fn add(
    /// The number.
    number: u8,
) -> u8 {
    number + 1
}

fn main() {}
