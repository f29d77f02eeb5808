//! Tools that live outside of this process.

use std::{fmt, sync::Arc};

use crate::{handler::Handler, policy::ToolPolicy, spec::ToolSpec};

/// What a remote source is, in the order in which they go before one another where two have a tool of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemoteKind {
    /// A module over HTTP.
    Module,
    /// An MCP server.
    Mcp,
}

impl fmt::Display for RemoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Module => "module",
            Self::Mcp => "MCP server",
        })
    }
}

/// A source of tools outside of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// What it is.
    pub kind: RemoteKind,
    /// Its name in the configuration, one of its kind.
    pub name: Arc<str>,
    /// Where it is, for people: a URL or a command, without secrets.
    pub address: Arc<str>,
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at {}", self.kind, self.name, self.address)
    }
}

/// A tool that a remote source offers.
#[derive(Clone)]
pub struct Offer {
    /// What it is to a model.
    pub spec: ToolSpec,
    /// Who may call it and how.
    pub policy: ToolPolicy,
    /// Calls it there. An offer with another handler is another tool, also where spec and policy are the same.
    pub handler: Arc<dyn Handler>,
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer").field("tool", &self.spec.tool_name).finish_non_exhaustive()
    }
}
