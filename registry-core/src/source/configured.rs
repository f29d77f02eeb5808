//! Tools that are defined in a file.

use std::{fmt, sync::Arc};

use crate::{handler::Handler, policy::ToolPolicy, spec::ToolSpec};

/// The tools of files, and the faults that were found in them.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredTools {
    /// The tools that can be used.
    pub tools: Vec<ConfiguredTool>,
    /// What is wrong with the others.
    pub faults: Vec<ConfigFault>,
}

/// A tool that a file defines.
#[derive(Clone, derive_more::Debug)]
pub struct ConfiguredTool {
    /// What the tool is.
    pub spec: ToolSpec,
    /// Who may call it, and how.
    pub policy: ToolPolicy,
    /// What runs.
    #[debug(skip)]
    pub handler: Arc<dyn Handler>,
    /// The file.
    pub file: Arc<str>,
    /// The line at which the tool begins, from 1.
    pub line: u32,
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
