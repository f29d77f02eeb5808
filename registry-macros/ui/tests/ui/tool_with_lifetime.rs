use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello<'a>(
    /// To whom.
    name: &str,
) -> String {
    name.to_owned()
}

fn main() {}
