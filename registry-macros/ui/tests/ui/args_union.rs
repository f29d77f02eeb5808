use registry_core::prelude::*;

#[args]
union Hello {
    a: u8,
    b: u8,
}

fn main() {}
