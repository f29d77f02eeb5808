use registry_core::prelude::*;

/// Deletes all files.
#[tool(effect = Effect::Destructive)]
async fn clean() {}

fn main() {}
