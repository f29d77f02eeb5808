use registry_core::prelude::*;

/// Says hello.
#[tool]
async unsafe fn hello() -> String {
    String::new()
}

fn main() {}
