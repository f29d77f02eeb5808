//! What was accepted of a remote source's tools, to see when they become others.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use registry_core::{
    guard::audit::hash_arguments,
    store::{Kept, ManifestStore, StoreError},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// So many tools are remembered of a source, those that are gone among them.
const MAX_REMEMBERED: usize = 4000;
/// How much of a SHA-256 is shown to whoever is to accept something, in hex digits: 128 bits.
const DIGEST: usize = 32;

/// The tools of a source as they are now, by the names they have here.
pub(super) type Pins = BTreeMap<String, Pin>;

/// SHA-256, in hex, of the parts of a definition that a model or a check goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pin {
    description: String,
    schema: String,
    rules: String,
}

impl Pin {
    /// Of what is said of the tool, of what it takes and gives, and of who may call it and what it does.
    pub(super) fn new(description: &Value, schema: &Value, rules: &Value) -> Self {
        let [description, schema, rules] = [description, schema, rules].map(hash_arguments);
        Self { description, schema, rules }
    }
}

/// How a tool differs from what was accepted.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ToolChange {
    /// The tool's name.
    pub tool: String,
    /// What has changed: `description`, `schema`, `rules`; or `new`.
    pub parts: Vec<&'static str>,
}

/// Why the tools of a source could not be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// No module, or no MCP server, of that name is configured.
    #[error("Unknown {kind}: {name}")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The tools are no longer those that the digest stands for. Gives theirs.
    #[error(
        "nothing was accepted, as the tools are no longer those of that digest; look at them again, their digest is {0}"
    )]
    Changed(String),
    /// It has no tools that could be accepted.
    #[error("nothing was accepted, as there are no tools; has it been reached yet?")]
    Nothing,
    /// The store did not keep it; a text for the operator.
    #[error("nothing was accepted, as it could not be kept: {0}")]
    NotKept(StoreError),
}

/// The tools of a source as they were accepted. A tool that is gone is remembered, so that another does not pass under its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Accepted {
    tools: Pins,
}

/// What is known of what was accepted.
#[derive(Default)]
enum Known {
    /// The store could not be read.
    #[default]
    Unknown,
    /// It was never asked before.
    Nothing,
    Of(Accepted),
}

#[derive(Default)]
struct State {
    known: Known,
    /// Whether the store has it too.
    is_kept: bool,
}

/// What was accepted of one source, in memory and in the store.
pub(super) struct Acceptance {
    store: Arc<dyn ManifestStore>,
    /// The source's key in the store.
    key: String,
    /// The source, for people: `the module files`.
    source: String,
    /// Whether what was not accepted is off.
    pin: bool,
    state: Mutex<State>,
}

impl Acceptance {
    pub(super) fn new(store: Arc<dyn ManifestStore>, key: String, source: String, pin: bool) -> Self {
        Self { store, key, source, pin, state: Mutex::default() }
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pin
    }

    /// Whether the store could not be read, so that nobody knows what was accepted.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self.state.lock().known, Known::Unknown)
    }

    /// Reads what was accepted, here or by another server on the same store.
    pub(super) async fn read(&self) {
        let kept = self.store.kept(&self.key, Kept::Accepted).await;
        let read = kept.and_then(|text| {
            text.map(|text| serde_json::from_str(&text)).transpose().map_err(StoreError::corrupt)
        });
        let mut state = self.state.lock();
        match (read, &state.known) {
            (Ok(Some(accepted)), _) => *state = State { known: Known::Of(accepted), is_kept: true },
            (Ok(None), Known::Unknown) => state.known = Known::Nothing,
            // What this process knows is not forgotten because the store was emptied.
            (Ok(None), _) => state.is_kept = false,
            (Err(cause), _) => tracing::debug!(source = self.key, %cause, "accepted_not_read"),
        }
    }

    /// Accepts of the tools what nobody has to look at, and keeps it: all of a source that is asked for the first time, and new
    /// ones of one that is not pinned.
    pub(super) async fn accept_new(&self, tools: &Pins) {
        let to_keep = {
            let mut state = self.state.lock();
            let has_changed = state.known.accept_new(tools, self.pin);
            state.is_kept &= !has_changed;
            match &state.known {
                Known::Of(accepted) if !state.is_kept => Some(accepted.clone()),
                _ => None,
            }
        };
        if let Some(accepted) = to_keep {
            let kept = self.keep(&accepted).await;
            if let Err(cause) = &kept {
                // It is tried again with the next list of tools.
                tracing::warn!(source = self.key, %cause, "accepted_not_kept");
            }
            self.state.lock().is_kept = kept.is_ok();
        }
    }

    /// Accepts the tools as they are, where they are what the digest stands for.
    pub(super) async fn accept(&self, tools: &Pins, digest: &str) -> Result<(), AcceptError> {
        if tools.is_empty() {
            return Err(AcceptError::Nothing);
        }
        let now = digest_of(tools);
        if digest != now {
            return Err(AcceptError::Changed(now));
        }
        self.read().await;
        let mut accepted = match &self.state.lock().known {
            Known::Of(accepted) => accepted.clone(),
            Known::Nothing => Accepted::default(),
            Known::Unknown => {
                let cause = "what was accepted before cannot be read";
                return Err(AcceptError::NotKept(StoreError::unavailable(cause)));
            }
        };
        accepted.tools.extend(tools.clone());
        self.keep(&accepted).await.map_err(AcceptError::NotKept)?;
        *self.state.lock() = State { known: Known::Of(accepted), is_kept: true };
        Ok(())
    }

    async fn keep(&self, accepted: &Accepted) -> Result<(), StoreError> {
        let text = serde_json::to_string(accepted).map_err(StoreError::invalid)?;
        self.store.keep(&self.key, Kept::Accepted, &text).await
    }

    /// How the tools differ from what was accepted.
    pub(super) fn changes(&self, tools: &Pins) -> Vec<ToolChange> {
        match &self.state.lock().known {
            Known::Of(accepted) => {
                tools.iter().filter_map(|(name, pin)| accepted.change(name, pin)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Why a tool is off until somebody has looked at it.
    pub(super) fn quarantine(&self, change: Option<&ToolChange>) -> Option<String> {
        let source = &self.source;
        match change {
            _ if !self.pin => None,
            Some(change) => {
                let what = match change.parts.as_slice() {
                    ["new"] => "it is new".to_owned(),
                    parts => format!("its {} changed", parts.join(" and ")),
                };
                Some(format!("{what} since {source} was accepted; look at it and accept {source}"))
            }
            None if self.is_unknown() => {
                Some(format!("what was accepted of {source} cannot be read now; it is tried again"))
            }
            None => None,
        }
    }
}

/// What names the tools as they are, for whoever looks at them and accepts them.
pub(super) fn digest_of(tools: &Pins) -> String {
    let whole = hash_arguments(&json!(tools));
    whole.chars().take(DIGEST).collect()
}

impl Accepted {
    /// How a tool differs from what was accepted under its name.
    fn change(&self, name: &str, pin: &Pin) -> Option<ToolChange> {
        let parts = match self.tools.get(name) {
            None => vec!["new"],
            Some(known) => [
                ("description", known.description != pin.description),
                ("schema", known.schema != pin.schema),
                ("rules", known.rules != pin.rules),
            ]
            .into_iter()
            .filter_map(|(part, differs)| differs.then_some(part))
            .collect(),
        };
        (!parts.is_empty()).then(|| ToolChange { tool: name.to_owned(), parts })
    }
}

impl Known {
    /// Whether that changed anything.
    fn accept_new(&mut self, tools: &Pins, pin: bool) -> bool {
        let is_first = matches!(self, Self::Nothing);
        if is_first {
            *self = Self::Of(Accepted::default());
        }
        let Self::Of(accepted) = self else { return false };
        if pin && !is_first {
            return false;
        }
        let before = accepted.tools.len();
        if before > MAX_REMEMBERED {
            // A source that makes up new names all the time.
            accepted.tools.retain(|name, _| tools.contains_key(name));
        }
        for (name, pin) in tools {
            accepted.tools.entry(name.clone()).or_insert_with(|| pin.clone());
        }
        is_first || accepted.tools.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(description: &str, schema: &str, rules: &str) -> Pin {
        Pin::new(&json!(description), &json!(schema), &json!(rules))
    }

    #[test]
    fn m8_each_part_that_changed_is_named() {
        let accepted = Accepted { tools: [("m.f".to_owned(), pin("d", "s", "r"))].into() };
        for (now, parts) in [
            (pin("D", "s", "r"), vec!["description"]),
            (pin("d", "S", "r"), vec!["schema"]),
            (pin("d", "s", "R"), vec!["rules"]),
            (pin("D", "S", "r"), vec!["description", "schema"]),
        ] {
            assert_eq!(accepted.change("m.f", &now).unwrap().parts, parts);
        }
        assert_eq!(accepted.change("m.f", &pin("d", "s", "r")), None);
        assert_eq!(accepted.change("m.g", &pin("d", "s", "r")).unwrap().parts, ["new"]);
    }

    #[test]
    fn m8_a_digest_is_of_all_tools_and_all_their_parts() {
        let of = |tools: &[(&str, Pin)]| {
            digest_of(&tools.iter().map(|(name, pin)| ((*name).to_owned(), pin.clone())).collect())
        };
        let whole = of(&[("m.f", pin("d", "s", "r"))]);
        assert_eq!(whole.len(), DIGEST);
        for other in [
            of(&[]),
            of(&[("m.g", pin("d", "s", "r"))]),
            of(&[("m.f", pin("d", "s", "R"))]),
            of(&[("m.f", pin("d", "s", "r")), ("m.g", pin("d", "s", "r"))]),
        ] {
            assert_ne!(whole, other);
        }
    }
}
