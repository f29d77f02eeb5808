//! The `toolrack` program: the bundled tools, and what they need.

use std::process::ExitCode;

use llm_bridge::cli::{self, Host, Settings};
use registry_core::{Resources, prelude::*};
// The tools are found by being linked; naming their crate does that.
use tools as _;

fn main() -> ExitCode {
    cli::main(Host { tables: &["search"], resources })
}

fn resources(settings: &Settings) -> Result<Resources, String> {
    let _ = settings;
    let text = |error: ToolError| error.message().to_owned();
    Ok(Resources::new().with(HttpClient::new().map_err(text)?).with(PublicHttpClient::new().map_err(text)?))
}
