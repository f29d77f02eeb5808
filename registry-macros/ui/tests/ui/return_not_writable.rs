use registry_core::prelude::*;

struct Hello;

/// Says hello.
#[tool]
async fn hello() -> Hello {
    Hello
}

fn main() {}
