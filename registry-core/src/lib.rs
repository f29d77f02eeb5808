//! A registry of tools for language models.
//!
//! A tool is an `async fn` with `#[tool]`; the [`Registry`] collects them, decides who may see and call what, and runs
//! each call down one path.

#[doc(hidden)]
pub mod __private;
mod arguments;
pub mod clock;
pub mod context;
mod execute;
pub mod guard;
#[cfg(feature = "http")]
pub mod http;
mod parameter;
pub mod plugin;
pub mod policy;
pub mod prelude;
pub mod registry;
pub mod resource;
pub mod result;
pub mod schema;
mod select;
pub mod spec;

pub use context::{Caller, Conversation, EventSink, Origin, ToolCall, ToolContext, ToolEvent};
pub use execute::{BoxFuture, ToolOutcome, ToolReply};
pub use policy::{Cost, Effect, Permission, TextTag, ToolPolicy};
pub use registry::{Handler, Registry, RegistryBuilder, RegistryError, Tool, handler_fn};
pub use registry_macros::{args, discover, output, tool};
pub use resource::{Resource, Resources};
pub use result::{ErrorKind, ToolError, ToolResult};
pub use select::Selection;
pub use spec::ToolSpec;

#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../../docs/writing-tools.md")]
struct WritingTools;
