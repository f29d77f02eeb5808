use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    names: Vec<&str>,
) -> String {
    names.concat()
}

fn main() {}
