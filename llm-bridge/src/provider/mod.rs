//! What is known about each wire API, one file each, both directions; and the definitions of tools in the form that each takes.
//!
//! ```
//! use llm_bridge::provider::{Provider, definitions};
//! use registry_core::ToolSpec;
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"days": {"type": "integer", "exclusiveMinimum": 0}}});
//! let tool = ToolSpec { description: Some("Tells the weather.".into()), ..ToolSpec::new("travel.weather", schema) };
//! let defined = definitions("openai".parse::<Provider>()?, [&tool]);
//! assert_eq!(defined.list[0]["function"]["name"], "travel_weather");
//! assert_eq!(defined.names.original("travel_weather"), Some("travel.weather"));
//! # Ok::<(), llm_bridge::provider::UnknownProvider>(())
//! ```

mod anthropic;
mod definition;
mod gemini;
mod lower;
mod mcp;
pub mod names;
mod ollama;
pub mod openai;
mod prepared;
mod responses;
mod rules;
pub mod sse;

pub use definition::{
    Definer, Definitions, LeftOut, Loss, Provider, Subject, UnknownProvider, definition, definitions,
    snapshot,
};
pub use lower::remove_nulls;
pub(crate) use prepared::PreparedDefinitions;
