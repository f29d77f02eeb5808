use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: Strnig,
) -> String {
    String::new()
}

fn main() {}
