//! Tools that live outside of this process.

use std::{fmt, sync::Arc};

use strum::Display;

use crate::{handler::Handler, policy::ToolPolicy, spec::ToolSpec};

/// What a remote source is, in the order in which they go before one another where two have a tool of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum RemoteKind {
    /// A module over HTTP.
    #[strum(to_string = "module")]
    Module,
    /// An MCP server.
    #[strum(to_string = "MCP server")]
    Mcp,
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
#[derive(Clone, derive_more::Debug)]
#[debug("Offer({})", spec.tool_name)]
pub struct Offer {
    /// What it is to a model.
    pub spec: ToolSpec,
    /// Who may call it and how.
    pub policy: ToolPolicy,
    /// Calls it there. An offer with another handler is another tool, also where spec and policy are the same.
    pub handler: Arc<dyn Handler>,
}
