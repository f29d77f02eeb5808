//! Who may call a tool, how often, at what cost, and what it does to the world.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::flow::{Reads, Sends};

/// How far a caller is trusted, and how far a tool asks its callers to be. Ordered: guest, user, admin, owner.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown_level)]
pub enum Permission {
    /// Anyone.
    #[default]
    Guest,
    /// Somebody who is known.
    User,
    /// Somebody who runs the server.
    Admin,
    /// The one it belongs to.
    Owner,
}

impl Permission {
    /// All levels, lowest first.
    pub const ALL: [Self; 4] = [Self::Guest, Self::User, Self::Admin, Self::Owner];
}
/// What a call costs, for a gate to weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown_cost)]
pub enum Cost {
    /// Nothing worth counting.
    #[default]
    Free,
    /// A call to a paid service.
    Cheap,
    /// Enough that somebody should know.
    Expensive,
}

/// What a call does to the world.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown_effect)]
pub enum Effect {
    /// Nothing: it only looks.
    #[default]
    Read,
    /// It adds or changes something.
    Write,
    /// It takes something away that cannot be brought back.
    Destructive,
}

impl Effect {
    /// The name as listings write it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn unknown_level(text: &str) -> String {
    format!("unknown level `{text}`; the levels are guest, user, admin, owner")
}

fn unknown_cost(text: &str) -> String {
    format!("unknown cost `{text}`; the costs are free, cheap, expensive")
}

fn unknown_effect(text: &str) -> String {
    format!("unknown effect `{text}`; the effects are read, write, destructive")
}

/// Limits that an operator sets for a tool, in place of those that it has by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolLimits {
    /// Calls of one user in a day (UTC); 0 for any number. Without it, as the tool has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_limit: Option<u32>,
    /// The least time between two calls of one user, in seconds; 0 for none. Without it, as the tool has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_seconds: Option<u32>,
}

impl ToolLimits {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A line of text that is a call: `TAG: arg`, for models that know no other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TextTag {
    /// The word before the colon.
    pub tag_prefix: &'static str,
    /// Regular expression for what follows it; the whole rest of the line has to match.
    pub arg_pattern: &'static str,
    /// The argument that each group of the pattern is. Empty: the tool's first argument.
    pub arg_groups: &'static [&'static str],
    /// How to write it, for the prompt. Empty: made from the prefix and the groups.
    pub prompt_example: &'static str,
    /// Whether the line is taken out of what the user sees.
    pub strip_from_display: bool,
}

impl TextTag {
    /// The tag `PREFIX: anything`, taken out of what the user sees.
    pub const fn new(tag_prefix: &'static str) -> Self {
        Self {
            tag_prefix,
            arg_pattern: "(.+)",
            arg_groups: &[],
            prompt_example: "",
            strip_from_display: true,
        }
    }

    /// The regular expression for what follows the prefix.
    pub const fn pattern(mut self, arg_pattern: &'static str) -> Self {
        self.arg_pattern = arg_pattern;
        self
    }

    /// The arguments that the groups of the pattern are, in order.
    pub const fn groups(mut self, arg_groups: &'static [&'static str]) -> Self {
        self.arg_groups = arg_groups;
        self
    }

    /// How to write it, for the prompt.
    pub const fn example(mut self, prompt_example: &'static str) -> Self {
        self.prompt_example = prompt_example;
        self
    }

    /// Leaves the line in what the user sees.
    pub const fn keep_in_display(mut self) -> Self {
        self.strip_from_display = false;
        self
    }
}

/// The rules for calling a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ToolPolicy {
    /// The level a caller needs.
    pub permission: Permission,
    /// What a call costs.
    pub cost: Cost,
    /// How long a call may take.
    pub timeout: Duration,
    /// The least time between two calls of one user; zero for none.
    pub cooldown: Duration,
    /// Calls a user may make in a day (UTC); zero for any number.
    pub daily_limit: u32,
    /// Calls of it that run at once; 0 for any number.
    pub max_concurrent: u32,
    /// Whether the gate is asked before a call.
    pub requires_gate: bool,
    /// What a call does to the world.
    pub effect: Effect,
    /// Whether a second call with the same arguments changes nothing more. Always so for a read.
    pub idempotent: bool,
    /// What its results may hold; `None` where it does not say. [`Tool::reads`](crate::Tool::reads) is what counts then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// Where its arguments go; `None` where it does not say. [`Tool::sends`](crate::Tool::sends) is what counts then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sends: Option<Sends>,
    /// Whether a call can be run again from its start when the person has answered its [question](crate::ToolContext::ask): the tool changes
    /// nothing before the answer. Always so for a read, and where a second call changes nothing more.
    pub resumable: bool,
    /// The line of text that is a call.
    pub text_tag: Option<TextTag>,
    /// Whether the tool stays out of prompts and is found through [`SEARCH_TOOLS`](crate::SEARCH_TOOLS). It is no less
    /// allowed for that.
    pub deferred: bool,
    /// Whether its results go to the person as they are and end the turn: the model is not asked again.
    pub ends_turn: bool,
}

impl ToolPolicy {
    /// Anyone, at any time, for 30 seconds, only looking.
    pub const fn new() -> Self {
        Self {
            permission: Permission::Guest,
            cost: Cost::Free,
            timeout: Duration::from_secs(30),
            cooldown: Duration::ZERO,
            daily_limit: 0,
            max_concurrent: 0,
            requires_gate: false,
            effect: Effect::Read,
            idempotent: false,
            reads: None,
            sends: None,
            resumable: false,
            text_tag: None,
            deferred: false,
            ends_turn: false,
        }
    }
}

impl Default for ToolPolicy {
    fn default() -> Self {
        Self::new()
    }
}
