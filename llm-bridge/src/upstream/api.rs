//! The APIs that model servers are asked in. What is special about one is said here.

use serde::Deserialize;
use serde_json::Value;
use toolrack_apis::{Provider, Request, Wire, ollama::OllamaWire, openai::OpenAiWire};

use super::{kind::ModelList, settings::UpstreamSettings};

/// The APIs that model servers are asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamApi {
    /// OpenAI's chat completions.
    OpenAi,
    /// Ollama's own.
    Ollama,
}

impl UpstreamApi {
    /// Its wire, with what is set for the server, and the size of the context that is asked for.
    /// `loads` says whether the client may say how the model is loaded.
    pub(super) fn wire(
        self,
        settings: &UpstreamSettings,
        num_ctx: Option<u64>,
        loads: bool,
    ) -> Box<dyn Wire> {
        match self {
            Self::OpenAi => Box::new(OpenAiWire),
            Self::Ollama => Box::new(OllamaWire { num_ctx, keep_alive: settings.keep_alive.clone(), loads }),
        }
    }

    /// The size of the context that the client of a request asks for.
    pub(super) fn asked_context(self, request: &Request) -> Option<u64> {
        match self {
            Self::OpenAi => None,
            Self::Ollama => {
                let options = request.passing.get(Provider::Ollama, "options")?.get();
                let options: Value = serde_json::from_str(options).ok()?;
                let size = options.get("num_ctx")?;
                // Ollama takes 8192.0 as well.
                let whole = || size.as_f64().and_then(|size| format!("{:.0}", size.trunc()).parse().ok());
                size.as_u64().or_else(whole)
            }
        }
    }

    /// The address that the wire's paths are below, at a server whose OpenAI API is at `openai_base`.
    pub(super) fn base(self, openai_base: &str) -> &str {
        match self {
            Self::OpenAi => openai_base,
            Self::Ollama => root_of(openai_base),
        }
    }

    /// How its servers list their models; `None` where that depends on their kind.
    pub(super) fn list(self) -> Option<ModelList> {
        match self {
            Self::OpenAi => None,
            Self::Ollama => Some(ModelList::Ollama),
        }
    }

    /// Whether its requests have `num_ctx` and `keep_alive`.
    pub(crate) fn has_context_settings(self) -> bool {
        match self {
            Self::OpenAi => false,
            Self::Ollama => true,
        }
    }
}

/// An address without `/v1`.
pub(super) fn root_of(base: &str) -> &str {
    base.strip_suffix("/v1").unwrap_or(base)
}
