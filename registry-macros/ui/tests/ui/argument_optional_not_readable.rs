use registry_core::prelude::*;

struct Name(String);

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: Option<Name>,
) -> String {
    name.map(|name| name.0).unwrap_or_default()
}

fn main() {}
