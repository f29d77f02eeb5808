use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    name: &'static str,
) -> String {
    name.to_owned()
}

fn main() {}
