//! A registry's state as data: to look at, to keep, to move.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Registry, RegistryError, lifecycle::Cause};
use crate::{policy::ToolLimits, source::Source, spec::ToolSpec, tool::Tool};

/// A tool that is registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRegistration {
    /// What it is to a model.
    pub spec: ToolSpec,
    /// Whether it is switched on.
    #[serde(default = "on")]
    pub enabled: bool,
    /// What an operator has set in place of its own limits.
    #[serde(default, skip_serializing_if = "ToolLimits::is_empty")]
    pub limits: ToolLimits,
    /// When it was registered (UTC). The registry sets it.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
}

fn on() -> bool {
    true
}

/// All that is registered, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRegistrySnapshot {
    /// The tools.
    pub tools: Vec<ToolRegistration>,
}

impl Tool {
    /// What the registry holds of it now, to be kept or sent.
    pub fn registration(&self) -> ToolRegistration {
        ToolRegistration {
            spec: self.spec().clone(),
            enabled: self.is_enabled(),
            limits: self.limits(),
            created_at: Some(self.created_at()),
        }
    }
}

impl Registry {
    /// The whole state, by name. Policies and code are not part of it, nor is what the registry has of itself.
    pub fn snapshot(&self) -> ToolRegistrySnapshot {
        let tools = self.list_all(true);
        let kept = tools.iter().filter(|tool| *tool.source() != Source::BuiltIn);
        ToolRegistrySnapshot { tools: kept.map(|tool| tool.registration()).collect() }
    }

    /// Registers what a snapshot holds, without code, and sets the switches; what is registered already stays. Of a tool
    /// whose code is here only the switch is taken.
    ///
    /// # Errors
    /// One for each tool that could not be registered, as [`register`](Self::register) reports it. The others are.
    pub fn restore(&self, snapshot: ToolRegistrySnapshot) -> Result<(), Vec<RegistryError>> {
        let mut changing = self.shared.changing(Cause::Here);
        let problems: Vec<_> =
            snapshot.tools.into_iter().filter_map(|kept| changing.restore(kept).err()).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}
