use registry_core::prelude::*;

struct Client;

#[resource]
async fn client(ctx: &ToolContext) -> Client {
    let _ = ctx;
    Client
}

fn main() {}
