use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[arg(rename = NAME)]
    name: String,
) -> String {
    name
}

fn main() {}
