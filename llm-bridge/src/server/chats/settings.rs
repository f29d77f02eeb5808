//! The settings of a chat.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use toolrack_apis::{Effort, Thinking};

use crate::server::requests::api_error::ApiError;

/// The longest system prompt, in bytes.
const MAX_SYSTEM: usize = 64 << 10;
/// How many tools can be chosen.
const MAX_TOOLS: usize = 1000;
/// The longest name of a model, tool or persona, in bytes.
const MAX_NAME: usize = 256;
/// All settings of a chat as they are kept, in bytes of JSON.
const MAX_KEPT: usize = 192 << 10;

/// The settings of a chat; `null` is the server's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ChatSettings")]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    /// The system prompt.
    pub(super) system: Option<String>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) max_tokens: Option<u64>,
    /// `off`, `on`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
    pub(super) thinking: Option<String>,
    /// Only these tools of the server; none where it is empty.
    pub(super) tools: Option<Vec<String>>,
    pub(super) persona: Option<String>,
}

/// A field that is named, also as `null`.
fn named<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Settings that change: those that are named.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ChatSettingsChange")]
pub(super) struct SettingsChange {
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<String>")]
    model: Option<Option<String>>,
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<String>")]
    system: Option<Option<String>>,
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<f64>")]
    temperature: Option<Option<f64>>,
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<f64>")]
    top_p: Option<Option<f64>>,
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<u64>")]
    max_tokens: Option<Option<u64>>,
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<String>")]
    thinking: Option<Option<String>>,
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<Vec<String>>")]
    tools: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "named")]
    #[schemars(with = "Option<String>")]
    persona: Option<Option<String>>,
}

impl Settings {
    /// Reads those of a store.
    pub(super) fn of(json: &str) -> Result<Self, ApiError> {
        serde_json::from_str(json).map_err(|error| {
            tracing::error!(%error, "the settings of a chat cannot be read");
            ApiError::internal("the settings of the chat cannot be read; see the server's log")
        })
    }

    /// The same after a change.
    pub(super) fn changed(self, change: SettingsChange) -> Result<Self, ApiError> {
        let changed = Self {
            model: change.model.unwrap_or(self.model),
            system: change.system.unwrap_or(self.system),
            temperature: change.temperature.unwrap_or(self.temperature),
            top_p: change.top_p.unwrap_or(self.top_p),
            max_tokens: change.max_tokens.unwrap_or(self.max_tokens),
            thinking: change.thinking.unwrap_or(self.thinking),
            tools: change.tools.unwrap_or(self.tools),
            persona: change.persona.unwrap_or(self.persona),
        };
        changed.check()?;
        Ok(changed)
    }

    /// As they are kept.
    pub(super) fn json(&self) -> Result<String, ApiError> {
        let json = serde_json::to_string(self).map_err(|fault| ApiError::internal(fault.to_string()))?;
        if json.len() > MAX_KEPT {
            let message =
                format!("the settings are longer than {} KiB of JSON; choose fewer tools", MAX_KEPT >> 10);
            return Err(ApiError::invalid("settings", message));
        }
        Ok(json)
    }

    /// Whether and how much the model thinks.
    pub(super) fn thinking(&self) -> Result<Option<Thinking>, ApiError> {
        Ok(match self.thinking.as_deref() {
            None => None,
            Some("off") => Some(Thinking::Off),
            Some("on") => Some(Thinking::On),
            Some(word) => Some(Thinking::Effort(Effort::from_word(word).ok_or_else(|| {
                let message =
                    "`thinking` has to be `off`, `on`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or null";
                ApiError::invalid("settings.thinking", message)
            })?)),
        })
    }

    fn check(&self) -> Result<(), ApiError> {
        self.thinking()?;
        if self.system.as_ref().is_some_and(|system| system.len() > MAX_SYSTEM) {
            let message = format!("the system prompt is longer than {} KiB", MAX_SYSTEM >> 10);
            return Err(ApiError::invalid("settings.system", message));
        }
        if self.temperature.is_some_and(|temperature| !(0.0..=10.0).contains(&temperature)) {
            return Err(ApiError::invalid(
                "settings.temperature",
                "`temperature` has to be a number from 0 to 10",
            ));
        }
        if self.top_p.is_some_and(|top_p| !(0.0..=1.0).contains(&top_p)) {
            return Err(ApiError::invalid("settings.top_p", "`top_p` has to be a number from 0 to 1"));
        }
        if self.max_tokens == Some(0) {
            return Err(ApiError::invalid(
                "settings.max_tokens",
                "`max_tokens` has to be 1 or more, or null",
            ));
        }
        let tools = self.tools.iter().flatten();
        if tools.clone().count() > MAX_TOOLS {
            let message = format!("{MAX_TOOLS} tools are the most that can be chosen; `null` chooses all");
            return Err(ApiError::invalid("settings.tools", message));
        }
        let names = self.model.iter().chain(&self.persona).chain(tools);
        match names.map(String::len).max() > Some(MAX_NAME) {
            true => Err(ApiError::invalid("settings", format!("a name is longer than {MAX_NAME} bytes"))),
            false => Ok(()),
        }
    }
}
