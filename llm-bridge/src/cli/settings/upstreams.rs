//! The model servers.

use std::time::Duration;

use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Settings, flags::Secret};
use crate::{
    cli::address,
    upstream::{DEMO, Upstream, UpstreamApi, UpstreamSettings},
};

/// A model server: the table `[upstream]`, or one of `[upstreams.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTable {
    /// Base URL.
    pub url: String,
    /// The key that it requires.
    pub api_key: Option<Secret>,
    /// The environment variable with the key, in place of `api_key`.
    pub api_key_env: Option<String>,
    /// The API it is asked in; by default the one of its kind.
    pub api: Option<UpstreamApi>,
    /// The size of the context in tokens that Ollama is asked for.
    pub num_ctx: Option<u64>,
    /// How long Ollama keeps a model loaded.
    pub keep_alive: Option<String>,
}

impl UpstreamTable {
    /// Checks the settings without the environment.
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        let fault = |key: &str, why: &str| Err(format!("upstreams.{name}.{key}: {why}"));
        if name.is_empty() || name.contains(['/', '*']) || name.contains(char::is_whitespace) {
            return Err(format!("upstreams: `{name}` is not a name; write one without spaces, `/` and `*`"));
        }
        if self.url == DEMO {
            return fault("url", "the demo is no server; write `upstream = \"demo\"` alone");
        }
        if let Err(why) = address::check_upstream(&self.url) {
            return fault("url", &why);
        }
        if self.api_key.is_some() && self.api_key_env.is_some() {
            return fault("api_key", "there is `api_key_env` too; leave one of them out");
        }
        if self.num_ctx == Some(0) {
            return fault(
                "num_ctx",
                "0 leaves no room; write a number of tokens such as 32768, or leave it out",
            );
        }
        let is_openai = self.api == Some(UpstreamApi::OpenAi);
        if is_openai && (self.num_ctx.is_some() || self.keep_alive.is_some()) {
            return fault("api", "`num_ctx` and `keep_alive` need `api = \"ollama\"`, or none");
        }
        Ok(())
    }

    fn key(&self, name: &str) -> Result<Option<String>, String> {
        let Some(variable) = &self.api_key_env else { return Ok(self.api_key.clone().map(|key| key.0)) };
        match std::env::var(variable).ok().filter(|key| !key.is_empty()) {
            Some(key) => Ok(Some(key)),
            None => Err(format!(
                "upstreams.{name}.api_key_env: the variable `{variable}` is not set; set it to the server's key, or leave it out"
            )),
        }
    }
}

impl Settings {
    /// The server of the settings, if one is configured.
    ///
    /// # Errors
    /// When its settings are invalid.
    pub(super) fn configured_upstream(&self) -> Result<Option<Upstream>, String> {
        let idle = Duration::from_secs(self.limits.idle_seconds);
        let key = || self.upstream_api_key.clone().map(|key| key.0);
        match self.upstream.as_deref() {
            Some(DEMO) => return Ok(Some(Upstream::demo())),
            Some(base) => {
                let upstream = Upstream::http(base, key(), idle);
                return upstream.map(Some).map_err(|error| format!("upstream: {error}"));
            }
            None => {}
        }
        let Some((name, table)) = self.upstreams.iter().next() else { return Ok(None) };
        let settings = UpstreamSettings {
            name: name.clone(),
            api_key: table.key(name)?.or_else(key),
            api: table.api,
            num_ctx: table.num_ctx,
            keep_alive: table.keep_alive.clone(),
            ..UpstreamSettings::new(&table.url, idle)
        };
        Upstream::server(settings).map(Some).map_err(|error| format!("upstreams.{name}: {error}"))
    }
}

/// Reads the table `[upstream]` as `[upstreams.default]`.
///
/// # Errors
/// When the file has `[upstreams]`, too.
pub(super) fn name_single(file: &mut DeTable<'_>) -> Result<(), String> {
    if !file.contains_key("upstream") || !file.contains_key("upstreams") {
        let is_table = file.get("upstream").is_some_and(|value| value.get_ref().is_table());
        if let Some((key, table)) = is_table.then(|| file.remove_entry("upstream")).flatten() {
            let mut all = DeTable::new();
            all.insert(Spanned::new(key.span(), UpstreamSettings::DEFAULT_NAME.into()), table);
            let all = Spanned::new(key.span(), DeValue::Table(all));
            file.insert(Spanned::new(key.span(), "upstreams".into()), all);
        }
        return Ok(());
    }
    Err("there are `upstream` and `upstreams`; write each server as a table [upstreams.NAME]".to_owned())
}
