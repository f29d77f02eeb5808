use registry_core::prelude::*;

#[args]
struct Hello {
    name: String,
}

fn main() {}
