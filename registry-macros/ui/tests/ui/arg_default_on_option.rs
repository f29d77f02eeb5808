use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[arg(default = "you")]
    name: Option<String>,
) -> String {
    name.unwrap_or_default()
}

fn main() {}
