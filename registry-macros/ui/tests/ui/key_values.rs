use registry_core::prelude::*;

/// Says hello.
#[tool(permission = Admin, effect = "destructive", timeout = 10, cost = "dear", cooldown = "1 s")]
async fn hello() -> String {
    String::new()
}

/// Says hello.
#[tool(permission = LEVEL, timeout = LONG)]
async fn hello_too() -> String {
    String::new()
}

const LEVEL: Permission = Permission::Admin;

fn main() {}
