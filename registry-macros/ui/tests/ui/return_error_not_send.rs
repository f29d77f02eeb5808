use std::error::Error;

use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello() -> Result<String, Box<dyn Error>> {
    Ok("Hello.".to_owned())
}

fn main() {}
