use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// To whom.
    #[arg(defualt = "you")]
    name: String,
) -> String {
    name
}

fn main() {}
