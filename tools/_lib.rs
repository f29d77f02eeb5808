//! The tools that come with Toolrack.
//!
//! A file here is a tool, a folder is a module of tools; both are found by themselves. What begins with `_` is internal.

registry_core::discover!();

#[path = "_arithmetic.rs"]
mod arithmetic;
#[path = "_citations.rs"]
mod citations;
#[path = "_document_filter.rs"]
mod document_filter;
#[cfg(test)]
#[path = "_document_tenants_tests.rs"]
mod document_tenants_tests;
#[path = "_file_folder.rs"]
mod file_folder;
#[path = "_functions.rs"]
mod functions;
#[path = "_inbox.rs"]
mod inbox;
#[path = "_interpreter.rs"]
mod interpreter;
#[path = "_number.rs"]
mod number;
#[path = "_search_engine.rs"]
mod search_engine;
#[cfg(test)]
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
pub use interpreter::{CodeExecutorSettings, Python, Shell};
pub use search_engine::{InvalidSearchEngine, SearchEngine};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/writing-tools.md")]
struct WritingTools;
