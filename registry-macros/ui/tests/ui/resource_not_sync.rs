use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(greeting: Resource<std::cell::Cell<u8>>) -> String {
    greeting.get().to_string()
}

fn main() {}
