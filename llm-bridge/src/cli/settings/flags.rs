//! What can be said on the command line and in the environment.

use std::{convert::Infallible, path::PathBuf, str::FromStr};

use serde::Deserialize;

use super::origins::Given;
use crate::cli::address;

pub(super) const API_KEY_VARIABLE: &str = "TOOLRACK_API_KEY";
pub(super) const METRICS_KEY_VARIABLE: &str = "TOOLRACK_METRICS_KEY";
pub(super) const UPSTREAM_API_KEY_VARIABLE: &str = "TOOLRACK_UPSTREAM_API_KEY";

/// A key, which no log shows.
#[derive(Clone, PartialEq, Eq, Deserialize, derive_more::Debug)]
#[debug("(secret)")]
#[serde(transparent)]
pub struct Secret(pub(super) String);

impl Secret {
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::cli) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

/// What can be set on the command line and in the environment, for every command. What is empty counts as not set: that is how
/// tools that start containers write it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Configuration file [default: toolrack.toml if it exists]
    #[arg(long, env = "TOOLRACK_CONFIG", global = true, value_name = "FILE", value_parser = address::path())]
    pub config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:7331]
    #[arg(long, env = "TOOLRACK_LISTEN", global = true, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Base URL of the model server, such as http://127.0.0.1:8080/v1, or `demo` for the built-in demo
    /// [default: the first server found on the usual local ports, else demo]
    #[arg(long, env = "TOOLRACK_UPSTREAM", global = true, value_name = "URL")]
    pub upstream: Option<String>,
    /// API key for the model server
    #[arg(
        long,
        env = UPSTREAM_API_KEY_VARIABLE,
        global = true,
        value_name = "KEY",
        hide_env_values = true
    )]
    pub upstream_api_key: Option<Secret>,
    /// Model for clients that name none [default: the model server's first]
    #[arg(long, env = "TOOLRACK_MODEL", global = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Data folder [default: .toolrack]
    #[arg(long, env = "TOOLRACK_DATA_DIR", global = true, value_name = "DIR", value_parser = address::path())]
    pub data_dir: Option<PathBuf>,
    /// API key that clients must send
    #[arg(long, env = API_KEY_VARIABLE, global = true, value_name = "KEY", hide_env_values = true)]
    pub api_key: Option<Secret>,
    /// Which of them come from the environment, by the names of their fields.
    #[arg(skip)]
    pub(in crate::cli) by_variable: Vec<&'static str>,
}

impl Flags {
    /// The keys of the settings.
    pub(in crate::cli) const KEYS: [&str; 7] =
        ["config", "listen", "upstream", "upstream_api_key", "model", "data_dir", "api_key"];

    /// Which are given.
    pub(super) fn given(&self) -> Vec<Given> {
        let text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let path = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| !path.as_os_str().is_empty());
        let key = |key: &Option<Secret>| key.as_ref().is_some_and(|key| !key.0.is_empty());
        let given = [
            path(&self.config),
            text(&self.listen),
            text(&self.upstream),
            key(&self.upstream_api_key),
            text(&self.model),
            path(&self.data_dir),
            key(&self.api_key),
        ];
        let keys = Self::KEYS.into_iter().zip(given).filter(|(_, given)| *given);
        keys.map(|(key, _)| Given { key, by_variable: self.by_variable.contains(&key) }).collect()
    }
}
