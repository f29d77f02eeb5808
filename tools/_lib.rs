//! The tools that come with Toolrack.
//!
//! A file here is a tool or a resource of tools, a folder is a module of tools; all are found by themselves. What begins with `_` is
//! internal.

registry_core::discover!();

#[path = "_arithmetic.rs"]
mod arithmetic;
#[cfg(feature = "documents")]
#[path = "_citations.rs"]
mod citations;
#[cfg(feature = "documents")]
#[path = "_document_filter.rs"]
mod document_filter;
#[cfg(test)]
#[cfg(feature = "documents")]
#[path = "_document_tenants_tests.rs"]
mod document_tenants_tests;
#[path = "_functions.rs"]
mod functions;
#[path = "_interpreter.rs"]
mod interpreter;
#[path = "_number.rs"]
mod number;
#[cfg(test)]
#[cfg(feature = "documents")]
#[path = "_test_documents.rs"]
mod test_documents;
#[cfg(test)]
#[path = "_test_server.rs"]
mod test_server;
#[cfg(test)]
#[path = "_tests.rs"]
mod tests;

pub use file_folder::FileFolder;
pub use inbox::Inbox;
pub use python::Python;
pub use sandbox::CodeExecutorSettings;
pub use search_engine::{InvalidSearchEngine, SearchEngine};
pub use shell::Shell;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/writing-tools.md")]
struct WritingTools;
