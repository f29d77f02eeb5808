use registry_core::prelude::*;

#[resource]
fn nothing() {}

fn main() {}
