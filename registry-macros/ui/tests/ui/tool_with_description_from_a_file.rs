use registry_core::prelude::*;

#[doc = include_str!("README.md")]
#[tool]
async fn hello() -> String {
    String::new()
}

fn main() {}
