//! The APIs that take tool definitions.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::{anthropic, gemini, mcp, ollama, openai, responses, rules::Rules};

/// An API that takes tool definitions. As JSON it is its [`name`](Self::name).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = UnknownProvider, parse_err_fn = unknown)]
pub enum Provider {
    /// OpenAI chat completions.
    OpenAi,
    /// OpenAI Responses.
    Responses,
    /// Ollama's own API.
    Ollama,
    /// Gemini's `generateContent`.
    Gemini,
    /// Anthropic Messages.
    Anthropic,
    /// The Model Context Protocol.
    Mcp,
}

impl Provider {
    /// All of them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name in settings and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The maximum number of tools in a request, if there is one.
    pub const fn max_tools(self) -> Option<usize> {
        self.rules().max_tools
    }

    pub(crate) const fn rules(self) -> &'static Rules {
        match self {
            Self::OpenAi => &openai::tools::RULES,
            Self::Responses => &responses::tools::RULES,
            Self::Ollama => &ollama::tools::RULES,
            Self::Gemini => &gemini::tools::RULES,
            Self::Anthropic => &anthropic::tools::RULES,
            Self::Mcp => &mcp::tools::RULES,
        }
    }
}

/// An unknown provider. The message lists the known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProvider(String);

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Provider::ALL.iter().map(|provider| provider.name()).collect::<Vec<_>>().join(", ");
        write!(f, "the provider `{}` is not supported; known are {known}", self.0)
    }
}

impl std::error::Error for UnknownProvider {}

fn unknown(name: &str) -> UnknownProvider {
    UnknownProvider(name.to_owned())
}
