use registry_core::prelude::*;

struct Answer(String);

#[tool(timeot = secs(1), permission = "admin", version = "one", gate, gate)]
async fn hello(
    name: String,
    /// How often.
    #[arg(range = 1..=300, defualt = 3)]
    times: u8,
    /// How it sounds.
    #[arg(range = 1..=3)]
    tone: String,
) -> Answer {
    Answer(format!("{name}{times}{tone}"))
}

fn main() {}
