//! Who makes a call, and what may be used for them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::policy::Permission;

/// Who makes a call and what may be used at all. A request can narrow it, never widen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Caller {
    /// The user's id.
    pub user: String,
    /// How far the user is trusted.
    pub level: Permission,
    /// Whoever makes the call for the user, as one server does for another's.
    pub via: Option<String>,
    /// What the caller was known by, for the audit: `key` with the key's id, `token` or `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The modules that may be used; `None` for all. Tools without a module belong to `local`.
    pub allowed_modules: Option<BTreeSet<String>>,
    /// The tools that may be used, by name; `None` for all.
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Whether only tools that read may be used.
    #[serde(default)]
    pub reads_only: bool,
}

impl Caller {
    /// A user who may use every module.
    pub fn new(user: impl Into<String>, level: Permission) -> Self {
        Self {
            user: user.into(),
            level,
            via: None,
            credential: None,
            allowed_modules: None,
            allowed_tools: None,
            reads_only: false,
        }
    }

    /// Leaves only the modules that are allowed already and named here.
    pub fn only_modules<S: Into<String>>(mut self, modules: impl IntoIterator<Item = S>) -> Self {
        narrow(&mut self.allowed_modules, modules);
        self
    }

    /// The caller who makes calls for a user: with no more than either of both may do.
    pub fn on_behalf_of(self, user: Self) -> Self {
        let (via, credential) = (Some(self.user.clone()), self.credential.clone());
        Self { via, credential, ..user.narrowed_to(&self) }
    }

    /// Leaves only what another may do too.
    pub(crate) fn narrowed_to(mut self, other: &Self) -> Self {
        self.level = self.level.min(other.level);
        self.reads_only |= other.reads_only;
        if let Some(modules) = &other.allowed_modules {
            self = self.only_modules(modules);
        }
        if let Some(tools) = &other.allowed_tools {
            self = self.only_tools(tools);
        }
        self
    }

    /// Leaves only tools whose effect is `read`.
    pub fn only_reading(mut self) -> Self {
        self.reads_only = true;
        self
    }

    /// Leaves only the tools that are allowed already and named here.
    pub fn only_tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        narrow(&mut self.allowed_tools, tools);
        self
    }
}

fn narrow<S: Into<String>>(allowed: &mut Option<BTreeSet<String>>, to: impl IntoIterator<Item = S>) {
    let mut to: BTreeSet<String> = to.into_iter().map(Into::into).collect();
    if let Some(allowed) = allowed {
        to.retain(|name| allowed.contains(name));
    }
    *allowed = Some(to);
}

/// Nobody in particular: a guest.
impl Default for Caller {
    fn default() -> Self {
        Self::new("anonymous", Permission::Guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_only_narrow() {
        let caller = Caller::new("ada", Permission::User).only_tools(["a", "b"]).only_tools(["b", "c"]);
        assert_eq!(caller.allowed_tools.unwrap().into_iter().collect::<Vec<_>>(), ["b"]);
    }
}
