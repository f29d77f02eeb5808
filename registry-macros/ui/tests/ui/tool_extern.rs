use registry_core::prelude::*;

/// Says hello.
#[tool]
async extern "C" fn hello() -> String {
    String::new()
}

fn main() {}
