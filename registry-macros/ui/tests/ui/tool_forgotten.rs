use registry_core::prelude::*;

/// Says hello.
async fn hello(
    /// To whom.
    name: &str,
) -> String {
    name.to_owned()
}

fn main() {}
