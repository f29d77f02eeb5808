use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[arg(range = 1..=20)]
    name: String,
) -> String {
    name
}

fn main() {}
