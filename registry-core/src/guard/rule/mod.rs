//! What a person has allowed beforehand: calls of a tool that are made without a question.
//!
//! A rule is a person's own. It stands for the yes to a call that is asked about because it cannot be undone, and for nothing else: not where
//! the gate wants a person, and not where the call would do something with what its turn has read. It is about one tool as it was when
//! the person was asked: a tool of the same name from elsewhere, or with another schema, description or effect, is another one.

mod folder;
mod kept;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::EnumString;

use super::{Wanted, approval::Approval, audit::hash_arguments};
use crate::{json::is_within, schema::ArgumentChecker, source::Source, store::StoreError, tool::Tool};
pub(crate) use kept::Rules;
pub use kept::{MAX_PEOPLE, MAX_RULES};

/// Calls with longer arguments are not remembered, in bytes of JSON: a rule is listed with all that it allows.
const MAX_ARGUMENTS: usize = 4096;
/// Arguments that name a file or a folder, where their schema says that they are texts.
const PATHS: [&str; 10] = [
    "path",
    "file",
    "folder",
    "directory",
    "dir",
    "filename",
    "file_name",
    "file_path",
    "filepath",
    "directory_path",
];

/// What a rule allows of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scope", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleScope {
    /// Every call in one chat.
    Chat {
        /// The chat's id.
        chat: String,
    },
    /// Calls with exactly these arguments.
    Arguments {
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// Calls on what lies in a folder.
    Folder {
        /// The folder.
        folder: String,
        /// The argument that says on what.
        argument: String,
        /// All other arguments, which have to be these.
        others: Map<String, Value>,
    },
}

/// Which of them is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum RuleKind {
    /// Every call in the chat.
    Chat,
    /// Calls with these arguments.
    Arguments,
    /// Calls on what lies in the folder.
    Folder,
}

impl RuleScope {
    /// Which it is.
    pub fn kind(&self) -> RuleKind {
        match self {
            Self::Chat { .. } => RuleKind::Chat,
            Self::Arguments { .. } => RuleKind::Arguments,
            Self::Folder { .. } => RuleKind::Folder,
        }
    }

    /// What a person may have remembered of the answer to a call, the narrowest last.
    pub(super) fn offered(wanted: Wanted<'_>) -> Vec<Self> {
        let Wanted { tool, context, arguments, .. } = wanted;
        let chat = context.conversation().chat_id.clone();
        let mut offered: Vec<_> = chat.map(|chat| Self::Chat { chat }).into_iter().collect();
        let has_secret = tool.checker().is_ok_and(ArgumentChecker::has_secret);
        // What is not shown whole is not allowed for good.
        if has_secret || !is_within(arguments, MAX_ARGUMENTS) {
            return offered;
        }
        offered.extend(Self::in_folder(&tool.spec().input_schema, arguments));
        offered.push(Self::Arguments { arguments: arguments.clone() });
        offered
    }

    fn in_folder(schema: &Value, arguments: &Map<String, Value>) -> Option<Self> {
        let mut paths = arguments.iter().filter(|(name, _)| is_path(schema, name));
        let (Some((argument, path)), None) = (paths.next(), paths.next()) else { return None };
        let folder = folder::folder_of(path.as_str()?)?;
        let mut others = arguments.clone();
        others.remove(argument);
        Some(Self::Folder { folder, argument: argument.clone(), others })
    }

    /// Whether it allows a call with these arguments in this chat.
    fn allows(&self, given: &Map<String, Value>, in_chat: Option<&str>) -> bool {
        match self {
            Self::Chat { chat } => in_chat == Some(chat),
            Self::Arguments { arguments } => arguments == given,
            Self::Folder { folder, argument, others } => {
                let path = given.get(argument).and_then(Value::as_str);
                path.is_some_and(|path| folder::is_in(path, folder))
                    && given.len() == others.len() + 1
                    && others.iter().all(|(name, value)| given.get(name) == Some(value))
            }
        }
    }
}

fn is_path(schema: &Value, name: &str) -> bool {
    let Some(property) = schema.get("properties").and_then(|all| all.get(name)) else { return false };
    let is_text = match property.get("type") {
        Some(Value::String(one)) => one == "string",
        Some(Value::Array(some)) => some.iter().all(|one| one == "string" || one == "null"),
        _ => false,
    };
    is_text && PATHS.contains(&name)
}

/// What a person has allowed beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    /// Names it; a random text.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// What the tool was: see [`tool_identity`].
    pub(crate) tool_sha256: String,
    /// Who makes the calls for the person, where that is somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What it allows.
    #[serde(flatten)]
    pub scope: RuleScope,
    /// When it was made (UTC).
    pub made_at: Timestamp,
}

impl ApprovalRule {
    /// Whether it is still about this tool.
    pub fn is_about(&self, tool: &Tool) -> bool {
        self.tool == tool.name() && self.tool_sha256 == tool_identity(tool)
    }

    pub(super) fn allows(&self, wanted: Wanted<'_>) -> bool {
        let chat = wanted.context.conversation().chat_id.as_deref();
        self.via == wanted.context.caller().via
            && self.scope.allows(wanted.arguments, chat)
            && self.is_about(wanted.tool)
    }

    /// Whether a call that waits for this person already is one that it allows.
    pub(crate) fn allows_waiting(&self, approval: &Approval) -> bool {
        let chat = approval.remember.iter().find_map(|scope| match scope {
            RuleScope::Chat { chat } => Some(chat.as_str()),
            RuleScope::Arguments { .. } | RuleScope::Folder { .. } => None,
        });
        // Of a call with secrets, and of one that is asked about for more, no more than this is offered.
        let is_offered = |kind| approval.remember.iter().any(|scope| scope.kind() == kind);
        let is_whole = self.scope.kind() == RuleKind::Chat || is_offered(RuleKind::Arguments);
        !approval.tool_sha256.is_empty()
            && (&self.tool, &self.tool_sha256, &self.via)
                == (&approval.tool, &approval.tool_sha256, &approval.via)
            && is_whole
            && approval.arguments.as_object().is_some_and(|given| self.scope.allows(given, chat))
    }

    /// Whether both allow the same.
    fn is_like(&self, other: &Self) -> bool {
        let what = |rule: &Self| (rule.tool.clone(), rule.tool_sha256.clone(), rule.via.clone());
        what(self) == what(other) && self.scope == other.scope
    }
}

/// SHA-256 of what a tool is to a person: where it comes from, what it says of itself, what it takes and what it does.
pub(super) fn tool_identity(tool: &Tool) -> String {
    let source = match tool.source() {
        // Where in the code it stands changes with every line above it.
        Source::Compiled(_) => json!("compiled"),
        Source::Configured { file, .. } => json!(["file", &**file]),
        Source::Host => json!("host"),
        Source::BuiltIn => json!("built in"),
        Source::Remote(remote) => json!([remote.kind.to_string(), &*remote.name, &*remote.address]),
    };
    let (spec, policy) = (tool.spec(), tool.policy());
    hash_arguments(&json!([
        source,
        spec.tool_name,
        spec.version,
        spec.description,
        &*spec.input_schema,
        policy.effect.as_str(),
    ]))
}

/// Why a rule was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// There is no such approval that this person is asked for.
    #[error("there is no such approval")]
    Unknown,
    /// It has been answered, used or withdrawn, or has expired.
    #[error("the approval was answered already, or has expired")]
    Closed,
    /// The person could not choose this.
    #[error("this cannot be remembered of this call")]
    NotOffered,
    /// The person has as many rules as one may have.
    #[error("{MAX_RULES} rules are kept already: revoke some first")]
    Full,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(schema: &Value, arguments: &Value) -> Option<RuleScope> {
        RuleScope::in_folder(schema, arguments.as_object().unwrap())
    }

    #[test]
    fn b17_a_folder_is_offered_for_the_one_argument_that_is_a_path() {
        let text = json!({"type": "string"});
        let schema = json!({"properties": {"path": text, "file": {"type": ["string", "null"]}, "to": text, "dir": {"type": "integer"}}});
        let scope = offered(&schema, &json!({"path": "notes/a", "to": "b", "dir": 1})).unwrap();
        let others = json!({"to": "b", "dir": 1}).as_object().unwrap().clone();
        let wanted = RuleScope::Folder { folder: "notes".into(), argument: "path".into(), others };
        assert_eq!(scope, wanted);
        for none in [
            json!({"path": "notes/a", "file": "notes/b"}),
            json!({"to": "notes/a"}),
            json!({"path": "a"}),
            json!({"dir": 1}),
            json!({"folder": "notes/a"}),
        ] {
            assert_eq!(offered(&schema, &none), None, "{none}");
        }
    }
}
