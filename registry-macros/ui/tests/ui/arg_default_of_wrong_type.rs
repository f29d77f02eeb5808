use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// How often.
    #[arg(default = "three")]
    times: u8,
) -> String {
    "hello".repeat(times.into())
}

fn main() {}
