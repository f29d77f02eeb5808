use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello() -> String {
    let name = std::rc::Rc::new("you");
    std::future::ready(()).await;
    name.to_string()
}

fn main() {}
