use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(greeting: &Resource<String>) -> String {
    greeting.to_string()
}

fn main() {}
