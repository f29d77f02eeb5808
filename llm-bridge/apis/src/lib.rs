//! The formats of model APIs: tool definitions for six of them, and the requests and answers of OpenAI's chat completions.
//! Each API is a folder; nothing here sends, runs or stores anything.
//!
//! ```
//! use serde_json::json;
//! use toolrack_apis::{Definer, Provider, Subject};
//!
//! let schema = json!({"type": "object", "properties": {"days": {"type": "integer", "exclusiveMinimum": 0}}});
//! let tool = Subject::new("travel.weather", "Get the weather.", &schema);
//! let defined = Definer::new("openai".parse::<Provider>()?).definitions([tool]);
//! assert_eq!(defined.list[0]["function"]["name"], "travel_weather");
//! assert_eq!(defined.names.original("travel_weather"), Some("travel.weather"));
//! # Ok::<(), toolrack_apis::UnknownProvider>(())
//! ```

mod anthropic {
    pub(crate) mod tools;
}
mod definition;
mod gemini {
    pub(crate) mod tools;
}
mod mcp {
    pub(crate) mod tools;
}
pub mod names;
mod number;
mod ollama {
    pub(crate) mod tools;
}
pub mod openai;
mod provider;
mod responses {
    pub(crate) mod tools;
}
mod rules;
mod schema;
pub mod sse;

pub use definition::{Definer, Definitions, Hints, LeftOut, Loss, Subject, snapshot};
pub use number::whole_number;
pub use provider::{Provider, UnknownProvider};
pub use schema::remove_nulls;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/providers.md")]
struct Providers;
