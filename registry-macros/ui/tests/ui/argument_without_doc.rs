use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(name: String) -> String {
    name
}

fn main() {}
