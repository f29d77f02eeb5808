use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: impl Into<String>,
) -> String {
    name.into()
}

fn main() {}
