use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello() -> String
where
    String: Clone,
{
    String::new()
}

fn main() {}
