use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: &mut String,
) -> String {
    name.clone()
}

fn main() {}
