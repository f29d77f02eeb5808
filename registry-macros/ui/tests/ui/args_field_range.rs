use registry_core::prelude::*;

#[args]
struct Hello {
    /// To whom.
    #[arg(range = 1..=3)]
    name: String,
}

fn main() {}
