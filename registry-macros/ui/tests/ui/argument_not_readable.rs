use registry_core::prelude::*;

struct Name(String);

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: Name,
) -> String {
    name.0
}

fn main() {}
