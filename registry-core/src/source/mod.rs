//! Where tools come from beside the compiled ones.

#[cfg(feature = "config")]
pub(crate) mod config;
#[cfg(feature = "config")]
mod document;
mod remote;

use std::{fmt, sync::Arc};

use jiff::Timestamp;

use crate::{
    policy::ToolPolicy,
    spec::ToolSpec,
    tool::{Handler, Source, Tool},
};
#[cfg(feature = "config")]
pub use document::Format;
pub(crate) use remote::Offers;
pub use remote::{Offer, Remote, RemoteKind};

/// A tool as the file defines it.
#[derive(Clone)]
pub(crate) struct Configured {
    pub(crate) spec: ToolSpec,
    pub(crate) policy: ToolPolicy,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
}

impl Configured {
    /// A tool of its own for one registry.
    pub(crate) fn tool(&self, created_at: Timestamp) -> Tool {
        let source = Source::Configured { file: Arc::clone(&self.file), line: self.line };
        let tool = Tool::of_host(self.spec.clone(), self.policy, Some(Arc::clone(&self.handler)), created_at);
        tool.with_source(source)
    }
}

/// What is wrong with a file of tools, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The tool's name, where it has one.
    pub tool: Option<String>,
    /// What is wrong and what to write.
    pub message: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if let Some(tool) = &self.tool {
            write!(f, "tool {tool}: ")?;
        }
        f.write_str(&self.message)
    }
}
