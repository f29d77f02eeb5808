use registry_core::prelude::*;

const NAME: &str = "hello";

/// Says hello.
#[tool(name = NAME)]
async fn hello() -> String {
    NAME.to_owned()
}

fn main() {}
