use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello<T: Default>() -> String {
    String::new()
}

fn main() {}
