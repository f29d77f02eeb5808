//! What `#[tool]` submits, and where the submissions are collected.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};

use crate::{
    context::ToolContext,
    flow::{Reads, Sends},
    handler::ToolFuture,
    policy::{Cost, Effect, Permission, TextTag, ToolPolicy},
    schema::literal::PluginExample,
};

/// Runs a compiled tool.
pub(crate) type Run = for<'a> fn(&'a ToolContext, Map<String, Value>) -> ToolFuture<'a>;

/// A tool that was compiled in: one static for each `#[tool]`.
///
/// The methods are the keys of the attribute: `#[tool(timeout = secs(10))]` is `.timeout(secs(10))`.
#[derive(Debug, Clone, Copy)]
pub struct Plugin {
    pub(crate) name: &'static str,
    /// The name of the function.
    pub(crate) function: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: &'static str,
    pub(crate) version: Option<&'static str>,
    pub(crate) tags: &'static [&'static str],
    pub(crate) deprecated: Option<&'static str>,
    pub(crate) policy: ToolPolicy,
    pub(crate) input_schema: fn() -> Value,
    pub(crate) output_schema: fn() -> Option<Value>,
    pub(crate) run: Run,
    pub(crate) missing: fn(&ToolContext) -> Option<String>,
    pub(crate) enabled: Option<fn(&ToolContext) -> bool>,
    pub(crate) needs: Option<&'static str>,
    pub(crate) examples: &'static [PluginExample],
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
        write!(f, "{}:{}", self.file, self.line)
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
        input_schema: fn() -> Value,
        output_schema: fn() -> Option<Value>,
        missing: fn(&ToolContext) -> Option<String>,
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
            input_schema,
            output_schema,
            run,
            missing,
            enabled: None,
            needs: None,
            examples: &[],
            place,
        }
    }

    /// Another name than the function's.
    pub const fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// A short name for people.
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// A semantic version.
    pub const fn version(mut self, version: &'static str) -> Self {
        self.version = Some(version);
        self
    }

    /// Words to find the tool by.
    pub const fn tags(mut self, tags: &'static [&'static str]) -> Self {
        self.tags = tags;
        self
    }

    /// The level a caller needs.
    pub const fn permission(mut self, permission: Permission) -> Self {
        self.policy.permission = permission;
        self
    }

    /// What a call costs.
    pub const fn cost(mut self, cost: Cost) -> Self {
        self.policy.cost = cost;
        self
    }

    /// How long a call may take; 30 s where nothing is said.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = timeout;
        self
    }

    /// The least time between two calls of one user.
    pub const fn cooldown(mut self, cooldown: Duration) -> Self {
        self.policy.cooldown = cooldown;
        self
    }

    /// Calls a user may make in a day (UTC).
    pub const fn daily_limit(mut self, daily_limit: u32) -> Self {
        self.policy.daily_limit = daily_limit;
        self
    }

    /// Calls of it that run at once; more wait for their turn.
    pub const fn max_concurrent(mut self, max_concurrent: u32) -> Self {
        self.policy.max_concurrent = max_concurrent;
        self
    }

    /// Whether the host's gate is asked before a call.
    pub const fn gate(mut self, gate: bool) -> Self {
        self.policy.requires_gate = gate;
        self
    }

    /// What a call does to the world.
    pub const fn effect(mut self, effect: Effect) -> Self {
        self.policy.effect = effect;
        self
    }

    /// Whether a second call with the same arguments changes nothing more.
    pub const fn idempotent(mut self, idempotent: bool) -> Self {
        self.policy.idempotent = idempotent;
        self
    }

    /// What the results may hold: private data, untrusted text, both or nothing of either.
    pub const fn reads(mut self, reads: Reads) -> Self {
        self.policy.reads = Some(reads);
        self
    }

    /// Where the arguments go: outside, or nowhere.
    pub const fn sends(mut self, sends: Sends) -> Self {
        self.policy.sends = Some(sends);
        self
    }

    /// Whether a call can be run again from its start when the person has answered its [question](ToolContext::ask): the tool changes nothing
    /// before the answer. Always so for a read, and where a second call changes nothing more.
    pub const fn resumable(mut self, resumable: bool) -> Self {
        self.policy.resumable = resumable;
        self
    }

    /// The line of text that is a call.
    pub const fn text_tag(mut self, text_tag: TextTag) -> Self {
        self.policy.text_tag = Some(text_tag);
        self
    }

    /// Whether the tool stays out of prompts and is found through [`SEARCH_TOOLS`](crate::SEARCH_TOOLS).
    pub const fn deferred(mut self, deferred: bool) -> Self {
        self.policy.deferred = deferred;
        self
    }

    /// Whether results go to the person as they are and end the turn, without asking the model again.
    pub const fn ends_turn(mut self, ends_turn: bool) -> Self {
        self.policy.ends_turn = ends_turn;
        self
    }

    /// A condition that is asked for every request, beside the resources that the function asks for.
    pub const fn enabled(mut self, enabled: fn(&ToolContext) -> bool) -> Self {
        self.enabled = Some(enabled);
        self
    }

    /// What has to be there for the condition to hold, for listings: `"the variable WEATHER_KEY"`.
    pub const fn needs(mut self, needs: &'static str) -> Self {
        self.needs = Some(needs);
        self
    }

    /// Why the tool should not be used any more and what to use instead.
    pub const fn deprecated(mut self, deprecated: &'static str) -> Self {
        self.deprecated = Some(deprecated);
        self
    }

    /// What people ask and the calls that answer it. Not public API: written by `#[tool]` from the keys `example`.
    #[doc(hidden)]
    pub const fn examples(mut self, examples: &'static [PluginExample]) -> Self {
        self.examples = examples;
        self
    }
}
