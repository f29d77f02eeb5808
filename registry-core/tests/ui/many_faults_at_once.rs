use registry_core::prelude::*;

#[tool(timeot = secs(1), permission = "admin", version = "one", gate, gate)]
async fn hello(
    name: String,
    /// How often.
    #[arg(range = 1..=300, defualt = 3)]
    times: u8,
    /// How it sounds.
    #[arg(range = 1..=3)]
    tone: String,
) -> std::rc::Rc<u8> {
    format!("{name}{tone}");
    std::rc::Rc::new(times)
}

fn main() {}
