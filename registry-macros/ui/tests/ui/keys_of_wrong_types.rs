use registry_core::prelude::*;

/// Says hello.
#[tool(timeot = secs(1), permission = "admin", costt = Cost::Free, daily_limit = -1)]
async fn hello() -> String {
    String::new()
}

fn main() {}
