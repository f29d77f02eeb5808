use registry_core::prelude::*;

/// Opens the safe.
#[tool]
async fn open(
    /// What opens it.
    #[arg(secret = true)]
    pin: String,
) -> String {
    pin
}

fn main() {}
