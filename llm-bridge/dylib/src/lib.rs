//! The bridge, and all that it depends on, as a dynamic library. A program that links it does not link them again when one of its tools
//! was changed, which is most of what a changed tool costs.
//!
//! ```ignore
//! #[cfg(feature = "dynamic-linking")]
//! use toolrack_dylib as _;
//! ```
//!
//! The program's build script calls `toolrack_build::dynamic_linking()`, so that the program finds the library. It is for development: the
//! program runs only where it was built, and rows of dialects in the program itself are not found.

// A crate that nobody names is not linked.
use llm_bridge as _;
