//! What was accepted of a remote source's tools, to see when they become others.

use std::sync::Arc;

use parking_lot::Mutex;
use registry_core::store::{Kept, ManifestStore, StoreError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pin::{Pin, Pins, digest_of};

/// So many tools are remembered of a source, those that are gone among them.
const MAX_REMEMBERED: usize = 4000;
/// The texts of all tools of a source together, in bytes; of those beyond, only the hashes are kept.
const MAX_TEXTS: usize = 4 << 20;

/// A part of a tool that is not as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ToolDifference {
    /// The tool's name.
    pub tool: String,
    /// Which part: `description`, `schema`, `rules`; or `new` for all of a new tool.
    pub part: &'static str,
    /// As it was accepted; null where there was none, or it was not kept.
    pub before: Option<String>,
    /// As it is now.
    pub after: String,
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
        accepted.bound_texts(tools);
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

    /// The parts that are not as they were accepted, each before and after.
    pub(super) fn differences(&self, tools: &Pins) -> Vec<ToolDifference> {
        match &self.state.lock().known {
            Known::Of(accepted) => {
                tools.iter().flat_map(|(name, pin)| accepted.differences(name, pin)).collect()
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

impl Accepted {
    /// How a tool differs from what was accepted under its name.
    fn change(&self, name: &str, pin: &Pin) -> Option<ToolChange> {
        let parts = match self.tools.get(name) {
            None => vec!["new"],
            Some(known) => known.differing(pin),
        };
        (!parts.is_empty()).then(|| ToolChange { tool: name.to_owned(), parts })
    }

    fn differences(&self, name: &str, pin: &Pin) -> Vec<ToolDifference> {
        let of = |part, before: Option<&str>, after: String| ToolDifference {
            tool: name.to_owned(),
            part,
            before: before.map(str::to_owned),
            after,
        };
        let Some(known) = self.tools.get(name) else {
            let whole: Vec<&str> = pin.parts().into_iter().filter_map(|(_, _, text)| text).collect();
            return vec![of("new", None, whole.join("\n\n"))];
        };
        let differing = known.differing(pin);
        let both = known.parts().into_iter().zip(pin.parts());
        both.filter(|((part, ..), _)| differing.contains(part))
            .map(|((part, _, before), (_, _, after))| of(part, before, after.unwrap_or_default().to_owned()))
            .collect()
    }

    /// Keeps the texts of the tools that are there, as far as there is room; of those that are gone the hashes are enough.
    fn bound_texts(&mut self, tools: &Pins) {
        let mut room = MAX_TEXTS;
        for (name, pin) in &mut self.tools {
            let size = pin.size();
            match tools.contains_key(name) && size <= room {
                true => room -= size,
                false => pin.forget_texts(),
            }
        }
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
        let mut has_news = is_first;
        if before > MAX_REMEMBERED {
            // A source that makes up new names all the time.
            accepted.tools.retain(|name, _| tools.contains_key(name));
        }
        for (name, pin) in tools {
            accepted.tools.entry(name.clone()).or_insert_with(|| pin.clone());
        }
        has_news |= accepted.tools.len() != before;
        if has_news {
            accepted.bound_texts(tools);
        }
        has_news
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pin::MAX_TEXT;

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
    fn b17_what_has_changed_is_shown_before_and_after() {
        let before = Pin::new(&json!([null, "Sends."]), &json!({"a": 1}), &json!([1]))
            .with_named_rules(&json!({"n": 1}));
        let after = Pin::new(&json!([null, "Sends all."]), &json!({"a": 1}), &json!([2]))
            .with_named_rules(&json!({"n": 2}));
        let accepted = Accepted { tools: [("m.f".to_owned(), before)].into() };
        let seen = accepted.differences("m.f", &after);
        let seen: Vec<_> =
            seen.iter().map(|one| (one.part, one.before.as_deref().unwrap(), one.after.as_str())).collect();
        assert_eq!(
            seen,
            [("description", "Sends.", "Sends all."), ("rules", "{\n  \"n\": 1\n}", "{\n  \"n\": 2\n}")]
        );
        let new = accepted.differences("m.g", &after);
        assert!(
            new.len() == 1
                && new[0].part == "new"
                && new[0].before.is_none()
                && new[0].after.starts_with("Sends all.")
        );
        // What an earlier version has kept has no texts.
        let kept = r#"{"tools": {"m.f": {"description": "d", "schema": "s", "rules": "r"}}}"#;
        let kept: Accepted = serde_json::from_str(kept).unwrap();
        assert_eq!(
            kept.differences("m.f", &after).iter().map(|one| one.before.clone()).collect::<Vec<_>>(),
            [None, None, None]
        );
    }

    #[test]
    fn b17_the_texts_of_what_was_accepted_take_so_much_room() {
        let long = "é".repeat(MAX_TEXT);
        let pin = pin(&long, "s", "r");
        let size = pin.size();
        assert!(size > MAX_TEXT && size < MAX_TEXT + 100, "cut: {size}");
        let tools: Pins = (0..1000).map(|number| (format!("m.{number:04}"), pin.clone())).collect();
        let mut accepted = Accepted { tools: tools.clone() };
        accepted.tools.insert("m.gone".to_owned(), pin.clone());
        accepted.bound_texts(&tools);
        let kept = accepted.tools.values().filter(|pin| pin.size() > 0);
        assert_eq!(kept.count(), MAX_TEXTS / size);
        assert_eq!((accepted.tools["m.gone"].size(), accepted.tools.len()), (0, 1001));
        assert_eq!(accepted.change("m.gone", &pin), None, "the hashes are kept");
    }
}
