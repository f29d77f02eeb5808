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

#[doc(hidden)]
pub mod __private;
mod arguments;
mod authority;
mod background;
mod builder;
mod choices;
pub mod clock;
mod coerce;
mod content;
pub mod context;
mod deferral;
pub mod events;
mod execute;
mod faults;
pub mod guard;
mod id;
mod lifecycle;
pub mod model;
mod nearest;
mod outcome;
mod overview;
mod parameter;
pub mod plugin;
pub mod policy;
pub mod prelude;
mod ranking;
pub mod registration;
pub mod registry;
pub mod resource;
pub mod result;
mod running_call;
pub mod schema;
mod search;
mod select;
pub mod source;
pub mod spec;
pub mod store;
pub mod sync;
mod tenant;
pub mod testing;
pub mod tool;
pub mod version;
mod watched;

pub use arguments::check_schema;
pub use authority::CallerAuthority;
pub use builder::{RegistryBuilder, compiled_tools};
pub use content::Content;
pub use context::{Caller, Conversation, EventSink, Origin, ToolCall, ToolContext, ToolEvent};
pub use deferral::{SEARCH_TOOLS, ToolPattern};
pub use events::{Change, RegistryEvent};
pub use execute::BoxFuture;
pub use id::random_id;
pub use nearest::nearest;
pub use outcome::{ToolOutcome, ToolReply};
pub use overview::{Overview, QueueDepth, Queues};
pub use policy::{Cost, Effect, Permission, TextTag, ToolPolicy};
pub use ranking::rank_tools;
pub use registration::{ToolRegistration, ToolRegistrySnapshot};
pub use registry::{Registry, RegistryError};
pub use registry_macros::{args, discover, output, tool};
pub use resource::{Resource, Resources};
pub use result::{ErrorKind, ToolError, ToolResult};
pub use search::Query;
pub use select::Selection;
pub use source::{ConfigFault, ConfiguredTool, ConfiguredTools, Offer, Remote, RemoteKind, alias_of};
pub use spec::ToolSpec;
pub use sync::{ChangeError, StoredRegistry};
pub use tenant::{DEFAULT_TENANT, tenant_path};
pub use tool::{Handler, LOCAL_MODULE, Source, Tool, handler_fn};
pub use watched::Watched;
