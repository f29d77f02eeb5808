use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[serde(default)]
    name: String,
    /// How often.
    #[schemars(range(min = 1))]
    times: u8,
) -> String {
    name.repeat(times.into())
}

fn main() {}
