use registry_core::prelude::*;

#[tool]
async fn hello() -> String {
    String::new()
}

fn main() {}
