use registry_core::prelude::*;

struct Oops;

/// Says hello.
#[tool]
async fn hello() -> Result<String, Oops> {
    Err(Oops)
}

fn main() {}
