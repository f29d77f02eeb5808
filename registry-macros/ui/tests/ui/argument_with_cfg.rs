use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[cfg_attr(all(), allow(unused))]
    name: String,
) -> String {
    name
}

fn main() {}
