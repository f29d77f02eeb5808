use registry_core::prelude::*;

/// Says hello.
#[tool(daily_limit = "10", tags = "a", enabled = true, needs = 3, max_concurrent = 2.0, title = 1, deprecated = true)]
async fn hello() -> String {
    String::new()
}

fn main() {}
