use registry_core::prelude::*;

/// Says hello.
#[tool]
#[allow(non_snake_case)]
async fn sayHello() -> String {
    String::new()
}

fn main() {}
