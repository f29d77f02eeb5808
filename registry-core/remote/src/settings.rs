//! What settings of modules and of MCP servers have in common, and how settings are written in a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use registry_core::{LOCAL_MODULE, secret_variable};
use reqwest::Url;
use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

use crate::definition::is_legal_name;

/// The longest name of a source, in bytes.
const MAX_NAME: usize = 64;

/// The key by which a source knows who asks. It is sent as `Authorization: Bearer KEY` and shown nowhere.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("RemoteKey(…)")]
pub struct RemoteKey(String);

impl RemoteKey {
    /// A key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// When the circuit of a source that fails opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerSettings {
    /// After so many calls in a row that did not reach it, took too long or were answered with 5xx; 0 for never. 5.
    pub failures: u32,
    /// How long the circuit is open before one call tries the source again; in a file in seconds. 30 s.
    #[serde(deserialize_with = "seconds")]
    pub rest: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, rest: Duration::from_secs(30) }
    }
}

/// What is wrong with the settings of sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {message}")]
pub struct SettingsError {
    /// The setting, such as `module_services.research`.
    pub setting: String,
    /// What is wrong and what to write.
    pub message: String,
}

/// The key that was given, or the one in a variable of the environment.
pub(crate) fn find_key(key: Option<&RemoteKey>, variable: Option<&str>) -> Result<Option<RemoteKey>, String> {
    let key = match (key, variable) {
        (Some(key), _) => key.clone(),
        (None, None) => return Ok(None),
        (None, Some(variable)) => RemoteKey::new(secret_variable(variable)?.unwrap_or_default()),
    };
    let from = variable.unwrap_or("`key`");
    match key.as_str() {
        "" => Err(format!("{from} is not set; put the key in it")),
        text if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(format!("{from} has a character that no key has, such as a space or the end of a line"))
        }
        _ => Ok(Some(key)),
    }
}

/// A URL of `http` or `https`, without a user name and password.
pub(crate) fn parse_url(url: &str, example: &str) -> Result<Url, String> {
    let url =
        Url::parse(url).map_err(|error| format!("`url` is none ({error}); write one such as {example}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("`url` has to begin with http:// or https:// and name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "`url` has a user name or password in it; name the key's variable in `key_env`".to_owned()
        );
    }
    Ok(url)
}

/// Why a source cannot have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is no prefix of a tool's name.
    #[error("a name here has 1 to {MAX_NAME} letters, digits, `_` and `-`")]
    Invalid,
    /// It is [`LOCAL_MODULE`].
    #[error("`{LOCAL_MODULE}` is the module of tools without a prefix; take another name")]
    Reserved,
}

/// Checks that tools can have the name of a source as a prefix.
///
/// # Errors
/// What a name has to be.
pub fn check_name(name: &str) -> Result<(), NameError> {
    match name {
        LOCAL_MODULE => Err(NameError::Reserved),
        _ if is_legal_name(name) && !name.contains('.') && name.len() <= MAX_NAME => Ok(()),
        _ => Err(NameError::Invalid),
    }
}

/// Stands for all tools of a source that are not named.
pub(crate) const ALL_OTHERS: &str = "*";

/// What the operator says of a tool, or of all others of its source.
pub(crate) fn said_of<T: Copy>(said: &BTreeMap<String, T>, tool: &str) -> Option<T> {
    said.get(tool).or_else(|| said.get(ALL_OTHERS)).copied()
}

/// A number of seconds, whole or not, greater than 0.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| de::Error::custom("expected a number of seconds greater than 0"))
}

/// The same, where it is given.
pub(crate) fn some_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    seconds(deserializer).map(Some)
}

/// Names, in a list or in a text with commas.
pub(crate) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    struct ListOrText;
    impl<'de> Visitor<'de> for ListOrText {
        type Value = BTreeSet<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of names, or a text with names and commas")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<BTreeSet<String>, E> {
            Ok(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<BTreeSet<String>, A::Error> {
            let mut names = BTreeSet::new();
            while let Some(name) = list.next_element()? {
                names.insert(name);
            }
            Ok(names)
        }
    }
    deserializer.deserialize_any(ListOrText)
}

/// The same, where it is given.
pub(crate) fn some_names<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeSet<String>>, D::Error> {
    names(deserializer).map(Some)
}
