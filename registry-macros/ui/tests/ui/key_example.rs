use registry_core::prelude::*;

/// Says hello.
#[tool(
    example = "Greet Ada." => {"nam": "Ada", "times": 300, "times": 1},
    example = "Greet Ada often." => {"name": 3, "times": "often", "loud": "yes", "words": "a", "by": null},
    example = "Greet Ada twelve times." => {"name": "Ada of Lovelace", "times": 12},
    example = "Greet nobody.",
    example = "Greet her." => {"name": her_name()},
    example = "Greet the list." => ["Ada"],
    timeout = secs(1) => {},
)]
async fn hello(
    /// To whom.
    #[arg(length = ..=10)]
    name: &str,
    /// How often.
    #[arg(range = 1..=10)]
    times: u8,
    /// Whether to shout.
    loud: Option<bool>,
    /// What to say.
    words: Vec<String>,
    /// By when.
    by: u64,
) -> String {
    format!("{name}{times}{loud:?}{words:?}{by}")
}

fn main() {}
