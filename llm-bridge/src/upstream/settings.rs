//! What is set for a model server.

use std::{num::NonZeroU16, time::Duration};

use super::{api::UpstreamApi, pattern::ModelPattern};

/// What is set for a model server.
#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    /// Its name in logs, metrics and requests.
    pub name: String,
    /// Its base address, such as `http://127.0.0.1:8080/v1`.
    pub url: String,
    /// The key it requires.
    pub api_key: Option<String>,
    /// The API it is asked in; `None` for the one of its kind.
    pub api: Option<UpstreamApi>,
    /// The size of the context in tokens that Ollama is asked for, where the client does not say.
    pub num_ctx: Option<u64>,
    /// The largest context in tokens that Ollama is asked for where [`num_ctx`](Self::num_ctx) is not set; 0 to leave the size to Ollama.
    pub max_num_ctx: u64,
    /// How long Ollama keeps a model loaded, such as `30m`, where the client does not say.
    pub keep_alive: Option<String>,
    /// Whether every user may say how a model is loaded, and not admins alone: `keep_alive`, `num_ctx` and other options of Ollama, and what
    /// else counts for all who ask it.
    pub users_load: bool,
    /// The models it is asked for; empty for those that it lists.
    pub models: Vec<ModelPattern>,
    /// The upstream that is asked when this one is away.
    pub fallback: Option<String>,
    /// The model that is asked for there; `None` for the same.
    pub fallback_model: Option<String>,
    /// How many answers it is asked for at once, for which users take turns; `None` for any number.
    pub parallel: Option<NonZeroU16>,
    /// How long it may send nothing while it answers.
    pub idle_timeout: Duration,
}

impl UpstreamSettings {
    /// The name of an upstream that was given none.
    pub const DEFAULT_NAME: &'static str = "default";

    /// The largest context that Ollama is asked for by default. Each token of it takes memory: that of a model with 8 billion parameters
    /// about 4 GiB in all.
    pub const MAX_NUM_CTX: u64 = 32_768;

    /// A server at an address, with nothing else set.
    pub fn new(url: impl Into<String>, idle_timeout: Duration) -> Self {
        Self {
            name: Self::DEFAULT_NAME.to_owned(),
            url: url.into(),
            api_key: None,
            api: None,
            num_ctx: None,
            max_num_ctx: Self::MAX_NUM_CTX,
            keep_alive: None,
            users_load: false,
            models: Vec::new(),
            fallback: None,
            fallback_model: None,
            parallel: None,
            idle_timeout,
        }
    }
}
