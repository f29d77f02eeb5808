use registry_core::prelude::*;

#[args(deny_unknown_fields)]
struct Hello {
    /// To whom.
    name: String,
}

fn main() {}
