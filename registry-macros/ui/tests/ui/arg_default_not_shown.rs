use registry_core::prelude::*;

#[args]
#[derive(Default)]
struct Tone {
    /// How loud.
    loud: bool,
}

/// Says hello.
#[tool]
async fn hello(
    /// How it sounds.
    #[arg(default = Tone::default())]
    tone: Tone,
) -> String {
    tone.loud.to_string()
}

fn main() {}
