//! The `toolrack` program: the command line of the bridge, and the bundled tools.

use std::process::ExitCode;

use llm_bridge::cli::{self, Host};
// A crate that nobody names is not linked.
#[cfg(feature = "dynamic-linking")]
use toolrack_dylib as _;
use tools as _;

/// The C library's allocator keeps most of what streams have taken for as long as it runs. A dynamic library has its own.
#[cfg(not(feature = "dynamic-linking"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else: a confined program is not to have what this one would make.
    if let Some(code) = toolrack_sandbox::launched() {
        return code;
    }
    cli::main(Host::default())
}
