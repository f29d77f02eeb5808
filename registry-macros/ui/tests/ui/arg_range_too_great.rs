use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// How often.
    #[arg(range = 1..=300)]
    times: u8,
) -> String {
    "hello".repeat(times.into())
}

fn main() {}
