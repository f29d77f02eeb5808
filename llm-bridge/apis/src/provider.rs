//! The APIs that take tool definitions.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{anthropic, gemini, mcp, ollama, openai, responses, rules::Rules};

/// An API that takes tool definitions. As JSON it is its [`name`](Self::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::Responses, Self::Ollama, Self::Gemini, Self::Anthropic, Self::Mcp];

    /// The name in settings and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Ollama => "ollama",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
        }
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

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown provider. The message lists the known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProvider(String);

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Provider::ALL.map(Provider::name).join(", ");
        write!(f, "the provider `{}` is not supported; known are {known}", self.0)
    }
}

impl std::error::Error for UnknownProvider {}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == name);
        found.ok_or_else(|| UnknownProvider(name.to_owned()))
    }
}
