//! A registry of tools for language models.
//!
//! A tool is an `async fn` with `#[tool]`; the [`Registry`] collects them, decides who may see and call what, and runs
//! each call down one path.
//!
//! ```
//! use registry_core::{Registry, prelude::*};
//!
//! /// Repeats a word.
//! #[tool(timeout = secs(1))]
//! async fn repeat(
//!     /// The word.
//!     word: &str,
//!     /// How often.
//!     #[arg(default = 2, range = 1..=10)]
//!     times: u8,
//! ) -> String {
//!     word.repeat(times.into())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::builder().build()?;
//! let context = ToolContext::default();
//! let outcome = registry.execute_tool("repeat", json!({"word": "ha"}), &context, None).await;
//! assert_eq!(outcome.for_model(), "haha");
//! # Ok(())
//! # }
//! ```
//!
//! # What may grow
//! Errors, and what is only read, are `#[non_exhaustive]`. What a [`store`], a [`Source`] or a gate's caller hands over, and the parts of
//! a result ([`Content`]), are not: where one is added, the compiler says what does not have it yet, and that is a new version.

#[doc(hidden)]
pub mod __private;
mod ask;
mod background;
pub mod clock;
mod concurrency;
mod content;
mod context;
mod data_folder;
mod events;
mod execute;
pub mod flow;
mod future;
pub mod guard;
mod handler;
mod id;
pub mod json;
pub mod model;
mod nearest;
mod outcome;
mod plugin;
mod policy;
pub mod prelude;
pub mod private;
mod provide;
mod registry;
mod result;
pub mod schema;
mod source;
mod spec;
pub mod store;
mod tenant;
pub mod testing;
pub mod text;
mod tool;
pub mod trace;
mod user_places;
mod variable;

pub use ask::{AskError, Asked, QuestionCall, QuestionCallState};
pub use concurrency::{Concurrency, QueueDepth, Queues};
pub use content::{
    Audio, Blob, Content, File, Image, Markdown, Part, Streamed, StreamedPart, Table, cell_text,
};
pub use context::{
    Caller, CallerAuthority, Conversation, EventSink, Origin, PendingQuestion, Resource, Resources, ToolCall,
    ToolContext, ToolEvent, ToolStore,
};
pub use data_folder::DataFolder;
pub use events::{Change, RegistryEvent};
pub use future::{BoxFuture, boxed};
// Of other crates, in what this one takes and gives.
pub use jiff::Timestamp;
pub use tokio_util::sync::CancellationToken;

pub use handler::{Handler, ToolFuture, handler_fn};
pub use id::random_id;
pub use nearest::nearest;
pub use outcome::{ToolOutcome, ToolReply};
pub use plugin::{Place, Plugin};
pub use policy::{Cost, Effect, Permission, TextTag, ToolLimits, ToolPolicy};
pub use provide::{Configuration, ResourceError, ResourcePlugin, ResourceTable, Settings, resource_tables};
pub use registry::{
    ChangeError, Overview, Query, QuestionError, Registry, RegistryBuilder, RegistryError, SEARCH_TOOLS,
    Selection, StoredRegistry, ToolPattern, ToolRegistration, ToolRegistrySnapshot, compare_versions,
    compiled_tools, rank_tools,
};
pub use registry_macros::{args, discover, output, resource, tool, tools};
pub use result::{ErrorKind, IntoToolError, KnownError, KnownErrors, ToolError, ToolResult, with_causes};
pub use source::{ConfigFault, ConfiguredTool, ConfiguredTools, Offer, Remote, RemoteKind, Source};
pub use spec::{Example, ToolSpec};
pub use tenant::{DEFAULT_TENANT, tenant_path};
pub use tool::{LOCAL_MODULE, Tool, alias_of};
pub use user_places::{UserPlace, UserPlaces};
pub use variable::{secret_in, secret_variable};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
