use registry_core::prelude::*;

type Client = Resource<String>;
type Name = String;

/// Says hello.
#[tool]
async fn hello(client: Client, #[arg(rename = "x")] context: &ToolContext, name: Name, (a, b): (u8, u8)) -> String {
    let _ = (client, context, name, a, b);
    String::new()
}

fn main() {}
