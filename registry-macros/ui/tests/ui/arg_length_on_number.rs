use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// How often.
    #[arg(length = 1..=3)]
    times: u8,
) -> String {
    "hello".repeat(times.into())
}

fn main() {}
