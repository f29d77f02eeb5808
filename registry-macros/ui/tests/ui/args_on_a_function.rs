use registry_core::prelude::*;

#[args]
fn hello() {}

fn main() {}
