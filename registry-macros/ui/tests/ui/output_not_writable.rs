use registry_core::prelude::*;

struct Inner;

#[output]
struct Hello {
    inner: Inner,
}

fn main() {}
