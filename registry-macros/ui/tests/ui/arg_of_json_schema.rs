use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[arg(regex = "^[a-z]+$", description = "To whom.")]
    name: String,
    /// How often.
    #[arg(min = 1, max = 3)]
    times: u8,
) -> String {
    name.repeat(times.into())
}

fn main() {}
