use registry_core::prelude::*;

/// Says hello.
#[tool(crate = "registry_core")]
async fn hello() -> String {
    String::new()
}

fn main() {}
