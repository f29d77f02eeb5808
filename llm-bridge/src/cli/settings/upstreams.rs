//! The model servers.

use std::{collections::BTreeMap, num::NonZeroU16, time::Duration};

use registry_core::secret_variable;
use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Settings, flags::Secret};
use crate::{
    cli::address,
    upstream::{DEMO, ModelPattern, Upstream, UpstreamApi, UpstreamSettings},
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
    /// The largest context in tokens that Ollama is asked for where `num_ctx` is not set; 0 leaves the size to Ollama.
    pub max_num_ctx: Option<u64>,
    /// How long Ollama keeps a model loaded.
    pub keep_alive: Option<String>,
    /// Whether every user may say how a model is loaded, and not admins alone.
    #[serde(default)]
    pub users_load: bool,
    /// The models it is asked for; by default those that it lists.
    #[serde(default)]
    pub models: Vec<ModelPattern>,
    /// The upstream that is asked when this one is away.
    pub fallback: Option<String>,
    /// The model that is asked for there; by default the same.
    pub fallback_model: Option<String>,
    /// How many answers it is asked for at once, for which users take turns.
    pub parallel: Option<NonZeroU16>,
}

impl UpstreamTable {
    /// Checks the settings without the environment, beside those of the others.
    pub(super) fn check(&self, name: &str, all: &BTreeMap<String, Self>) -> Result<(), String> {
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
        if self.num_ctx.is_some() && self.max_num_ctx.is_some() {
            return fault("max_num_ctx", "there is `num_ctx` too; leave one of them out");
        }
        if let Some(other) =
            self.fallback.as_deref().filter(|other| *other == name || !all.contains_key(*other))
        {
            let why =
                format!("there is no other upstream `{other}`; write the NAME of one of [upstreams.NAME]");
            return fault("fallback", &why);
        }
        if self.fallback_model.is_some() && self.fallback.is_none() {
            return fault("fallback_model", "there is no `fallback` that could have it; write that, too");
        }
        let has_none = self.api.is_some_and(|api| !api.has_context_settings());
        if has_none && self.num_ctx.or(self.max_num_ctx).is_some() | self.keep_alive.is_some() {
            return fault(
                "api",
                "`num_ctx`, `max_num_ctx` and `keep_alive` need `api = \"ollama\"`, or none",
            );
        }
        Ok(())
    }

    fn key(&self, name: &str) -> Result<Option<String>, String> {
        let Some(variable) = &self.api_key_env else { return Ok(self.api_key.clone().map(|key| key.0)) };
        let fault = |fault| format!("upstreams.{name}.api_key_env: {fault}");
        match secret_variable(variable).map_err(fault)? {
            Some(key) => Ok(Some(key)),
            None => Err(fault(format!(
                "the variable `{variable}` is not set; set it to the server's key, or leave it out"
            ))),
        }
    }
}

impl Settings {
    /// The servers of the settings, if any are configured.
    ///
    /// # Errors
    /// When their settings are invalid.
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
        if self.upstreams.is_empty() {
            return Ok(None);
        }
        let of = |(name, table): (&String, &UpstreamTable)| {
            let single = || key().filter(|_| name == UpstreamSettings::DEFAULT_NAME);
            Ok(UpstreamSettings {
                name: name.clone(),
                api_key: table.key(name)?.or_else(single),
                api: table.api,
                num_ctx: table.num_ctx,
                max_num_ctx: table.max_num_ctx.unwrap_or(UpstreamSettings::MAX_NUM_CTX),
                keep_alive: table.keep_alive.clone(),
                users_load: table.users_load,
                models: table.models.clone(),
                fallback: table.fallback.clone(),
                fallback_model: table.fallback_model.clone(),
                parallel: table.parallel,
                ..UpstreamSettings::new(&table.url, idle)
            })
        };
        let all = self.upstreams.iter().map(of).collect::<Result<Vec<_>, String>>()?;
        Upstream::several(all).map(Some).map_err(|error| format!("upstreams.{error}"))
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
