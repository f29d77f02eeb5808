use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: String,
    /// To whom else.
    #[arg(rename = "name")]
    other: String,
) -> String {
    name + &other
}

fn main() {}
