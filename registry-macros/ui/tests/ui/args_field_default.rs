use registry_core::prelude::*;

#[args]
struct Hello {
    /// How often.
    #[arg(default = "three")]
    times: u8,
}

fn main() {}
