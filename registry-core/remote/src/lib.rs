//! Tools of other programs in a [`Registry`](registry_core::Registry): of [modules](module) over HTTP, and of
//! [servers](mcp) of the Model Context Protocol. Each is asked for its tools, followed as they change, go and come back, and
//! called under the same checks as every other tool.
//!
//! ```
//! use std::sync::Arc;
//!
//! use registry_core::{Registry, store::MemoryManifests};
//! use toolrack_remote::module::{ModuleSettings, Modules, ModulesSettings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::builder().without_compiled().build()?;
//! let settings = ModulesSettings::default().with_module("research", ModuleSettings::new("http://127.0.0.1:1"));
//! let manifests = Arc::new(MemoryManifests::default());
//! let modules = Modules::new(&registry, settings, manifests.clone(), manifests)?;
//! modules.ready().await;
//! let report = &modules.reports()[0].source;
//! assert_eq!((report.name.as_str(), report.tools), ("research", 0));
//! assert!(report.error.is_some(), "nobody listens there");
//! # Ok(())
//! # }
//! ```

mod acceptance;
mod breaker;
mod definition;
mod log;
pub mod mcp;
pub mod module;
mod pin;
mod settings;
mod slots;
mod source;
mod text;
mod tool;
mod values;

pub use acceptance::{AcceptError, ToolChange, ToolDifference};
pub use breaker::BreakerState;
pub use definition::{MAX_TOOLS, is_legal_name};
pub use settings::{BreakerSettings, NameError, RemoteKey, SettingsError, check_name};
pub use source::{SourceReport, ToolFault};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/modules.md")]
struct ModulesGuide;
