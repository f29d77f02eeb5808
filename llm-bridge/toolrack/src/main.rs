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

/// SQLite's memory is that of the C library, which would keep as much as the largest row in each thread that has read one.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn give_large_rows_back() {
    /// What is so large, in bytes, goes back to the system when it is freed.
    const LARGE: libc::c_int = 1 << 20;
    // SAFETY: it sets a number, which any thread may do at any time.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}

fn main() -> ExitCode {
    // Before anything else: a confined program is not to have what this one would make.
    if let Some(code) = toolrack_sandbox::launched() {
        return code;
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    give_large_rows_back();
    cli::main(Host::default())
}
