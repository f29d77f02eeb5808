//! What `#[tool]` submits, and where the submissions are collected.

use std::{fmt, time::Duration};

use derive_more::Debug;
use serde_json::Value;

use crate::{
    context::ToolContext,
    handler::{Given, ToolFuture},
    policy::ToolPolicy,
    schema::{from_call::Describe, literal::PluginExample},
    text::plain_path,
};

/// Runs a compiled tool.
pub(crate) type Run = for<'a> fn(&'a ToolContext, Given) -> ToolFuture<'a>;

/// A tool that was compiled in: one static for each `#[tool]`.
///
/// The keys of the attribute are its public fields and those of its policy: `#[tool(timeout = secs(10))]` sets `policy.timeout`.
#[derive(Debug, Clone, Copy)]
pub struct Plugin {
    /// The name; without the key that of the function.
    pub name: &'static str,
    /// The name of the function.
    pub(crate) function: &'static str,
    /// A short name for people.
    pub title: Option<&'static str>,
    pub(crate) description: &'static str,
    /// A semantic version.
    pub version: Option<&'static str>,
    /// Words to find the tool by.
    pub tags: &'static [&'static str],
    /// Why the tool should not be used any more and what to use instead.
    pub deprecated: Option<&'static str>,
    /// Who may call it, how often and how, and what it does to the world. The key `gate` is `requires_gate`.
    pub policy: ToolPolicy,
    #[debug(skip)]
    pub(crate) parameters: &'static [&'static dyn Describe],
    pub(crate) output_schema: fn() -> Option<Value>,
    pub(crate) run: Run,
    /// A condition that is asked for every request, beside the resources that the function asks for.
    pub enabled: Option<fn(&ToolContext) -> bool>,
    /// What has to be there for the condition to hold, for listings: `"the variable WEATHER_KEY"`.
    pub needs: Option<&'static str>,
    /// What people ask and the calls that answer it. Not public API: written by `#[tool]` from the keys `example`.
    #[doc(hidden)]
    pub examples: &'static [PluginExample],
    pub(crate) place: Place,
}

/// Where in the source a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The path of the Rust module.
    pub module_path: &'static str,
    /// The file, from the workspace's root.
    pub file: &'static str,
    /// The line of the attribute.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", plain_path(self.file), self.line)
    }
}

/// A folder of `tools/` or another crate of tools, submitted by `discover!`: the tools in it are a module.
#[derive(Debug, Clone, Copy)]
pub struct Folder {
    /// The path of the Rust module that stands for the folder, or the crate's name.
    pub module_path: &'static str,
    /// The name of the module of tools.
    pub name: &'static str,
}

inventory::collect!(Plugin);
inventory::collect!(Folder);

/// A number of seconds, for attribute keys: `timeout = secs(10)`.
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A number of minutes, for attribute keys.
pub const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// A number of milliseconds, for attribute keys.
pub const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl Plugin {
    /// A tool that anyone may call, with the defaults of [`ToolPolicy`].
    pub const fn new(
        name: &'static str,
        description: &'static str,
        parameters: &'static [&'static dyn Describe],
        output_schema: fn() -> Option<Value>,
        run: Run,
        place: Place,
    ) -> Self {
        Self {
            name,
            function: name,
            title: None,
            description,
            version: None,
            tags: &[],
            deprecated: None,
            policy: ToolPolicy::new(),
            parameters,
            output_schema,
            run,
            enabled: None,
            needs: None,
            examples: &[],
            place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p1_a_place_is_shown_as_people_write_it() {
        let shown = |file| Place { module_path: "shop::stock", file, line: 3 }.to_string();
        assert_eq!(shown("shop/src/../tools/stock.rs"), "shop/tools/stock.rs:3");
        assert_eq!(shown("a/b/../../tools/stock.rs"), "tools/stock.rs:3");
        assert_eq!(shown("../../tools/stock.rs"), "../../tools/stock.rs:3");
    }
}
