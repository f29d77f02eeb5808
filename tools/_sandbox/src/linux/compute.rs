//! Takes away from its own process all but computing.

use std::error::Error;

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, Scope};
use nix::sys::resource::{Resource, setrlimit};
use registry_core::with_causes;

use super::syscalls;
use crate::Limits;

/// As far as the kernel goes; what it refuses first is the error.
pub(crate) fn restrict(limits: &Limits) -> Result<(), String> {
    let limited = [
        (Resource::RLIMIT_AS, limits.memory),
        (Resource::RLIMIT_CPU, limits.time.as_secs().saturating_add(1)),
        (Resource::RLIMIT_FSIZE, limits.disk),
        (Resource::RLIMIT_NOFILE, 16),
        (Resource::RLIMIT_CORE, 0),
    ]
    .map(|(resource, most)| {
        setrlimit(resource, most, most).map_err(|error| format!("{resource:?}: {error}"))
    });
    let refused = refuse_files().map_err(|error| format!("Landlock: {}", with_causes(&*error)));
    let filtered =
        syscalls::restrict_to_computing().map_err(|error| format!("seccomp filters are not there ({error})"));
    limited.into_iter().chain([refused, filtered]).collect()
}

/// No file, no address and no other process. The filter of system calls says so too: a kernel that lacks the one may have the other.
fn refuse_files() -> Result<(), Box<dyn Error>> {
    // By default what a kernel does not know is left out.
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V9))?
        .handle_access(AccessNet::from_all(ABI::V9))?
        .scope(Scope::from_all(ABI::V9))?;
    rules.create()?.restrict_self()?;
    Ok(())
}
