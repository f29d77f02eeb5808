use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[cfg_attr(all(), arg(length = 1..))]
    name: String,
) -> String {
    name
}

fn main() {}
