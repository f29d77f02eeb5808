//! Where tools come from.

mod configured;
mod remote;

use std::{fmt, sync::Arc};

use crate::plugin::Place;
pub use configured::{ConfigFault, ConfiguredTool, ConfiguredTools};
pub use remote::{Offer, Remote, RemoteKind};

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Compiled in with `#[tool]`.
    Compiled(Place),
    /// Defined in a file.
    Configured {
        /// The file.
        file: Arc<str>,
        /// The line on which its definition begins.
        line: u32,
    },
    /// Registered by the host's code.
    Host,
    /// Part of the registry itself, or of an entry point.
    BuiltIn,
    /// Offered by a source outside of this process.
    Remote(Remote),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiled(place) => place.fmt(f),
            Self::Configured { file, line } => write!(f, "{file}:{line}"),
            Self::Host => f.write_str("host"),
            Self::BuiltIn => f.write_str("built in"),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}
