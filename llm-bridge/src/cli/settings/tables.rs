//! The tables `[user]`, `[guard]` and `[chat]`.

use registry_core::{
    Concurrency, Permission,
    guard::{approval::APPROVAL_TIMEOUT, audit::AUDIT_MEBIBYTES_OF_USER},
};
use serde::{Deserialize, Serialize};
use toolrack_dialects::ParseOptions;

use crate::turn::ToolStyle;

/// The user of requests without a key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct User {
    /// The user's id.
    pub id: String,
    /// The user's level; by default admin while the server is on loopback without keys, else user.
    pub level: Option<Permission>,
    /// The modules that the user may use; all by default.
    pub allowed_modules: Option<Vec<String>>,
}

impl Default for User {
    fn default() -> Self {
        Self { id: "local".into(), level: None, allowed_modules: None }
    }
}

/// Approval, concurrency and audit of calls.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guard {
    /// Whether destructive calls require human approval.
    pub approve_destructive: bool,
    /// Whether persons may allow calls beforehand.
    pub approval_rules: bool,
    /// How long an approval can be answered, in seconds.
    pub approval_seconds: u64,
    /// Calls that run at once; 0 for no limit.
    pub max_running: usize,
    /// Calls that wait in the queue.
    pub max_waiting: usize,
    /// Calls of one user that run at once; 0 for no limit.
    pub max_running_per_user: usize,
    /// Calls of one user that wait.
    pub max_waiting_per_user: usize,
    /// Whether the audit has the arguments of calls, not only their hash.
    pub audit_arguments: bool,
    /// What the records of one user may take in a day, in MiB; 0 for any size.
    pub max_audit_mebibytes_per_user: u64,
}

impl Guard {
    /// The limits of concurrent calls.
    pub fn concurrency(&self) -> Concurrency {
        Concurrency {
            max_running: self.max_running,
            max_waiting: self.max_waiting,
            max_running_per_user: self.max_running_per_user,
            max_waiting_per_user: self.max_waiting_per_user,
        }
    }
}

impl Default for Guard {
    fn default() -> Self {
        let Concurrency { max_running, max_waiting, max_running_per_user, max_waiting_per_user } =
            Concurrency::default();
        Self {
            approve_destructive: true,
            approval_rules: true,
            approval_seconds: APPROVAL_TIMEOUT.as_secs(),
            max_running,
            max_waiting,
            max_running_per_user,
            max_waiting_per_user,
            audit_arguments: false,
            max_audit_mebibytes_per_user: AUDIT_MEBIBYTES_OF_USER,
        }
    }
}

/// How chats are conducted; see [`ChatSettings`](crate::turn::ChatSettings).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chat {
    /// For conversations without a system message and without tools.
    pub system_prompt: Option<String>,
    /// The same with tools.
    pub system_prompt_with_tools: Option<String>,
    /// `auto`, `native` or `prompt`.
    pub tool_style: ToolStyle,
    /// The only dialect in which text calls are parsed; all by default.
    pub dialect: Option<String>,
    /// Whether the model server's template begins with open thinking.
    pub thinking: bool,
    /// Parsing options of text calls.
    pub parsing: ParseOptions,
}
