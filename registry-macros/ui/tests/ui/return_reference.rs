use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: &str,
) -> &str {
    name
}

fn main() {}
