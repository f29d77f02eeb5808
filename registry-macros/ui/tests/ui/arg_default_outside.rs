use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// How often.
    #[arg(default = 30, range = 1..=14)]
    times: u8,
    /// To whom.
    #[arg(default = "", length = 1..)]
    name: &str,
    /// How loud.
    #[arg(example = -0.5, range = 0.0..1.0)]
    volume: f32,
    /// What is called as a whole.
    #[arg(example = "Greet her." => {"name": "Ada"})]
    whole: String,
) -> String {
    format!("{name}{volume}{whole}").repeat(times.into())
}

fn main() {}
