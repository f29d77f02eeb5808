use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// How often.
    #[arg(default = "three")]
    times: Option<u8>,
    /// How loud.
    #[arg(default = [1, 2])]
    loud: f32,
    /// To whom.
    #[arg(default = ["Ada", 3])]
    names: Vec<String>,
    /// From whom.
    #[arg(default = 3)]
    from: Option<String>,
) -> String {
    format!("{times:?}{loud}{names:?}{from:?}")
}

fn main() {}
