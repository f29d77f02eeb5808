//! What the compiler says to a wrong `#[tool]`: see `tests/ui/README.md`.
//!
//! A crate of its own, because the tests of a crate of macros are built for the compiler's machine, as macros are: `registry-core` and all
//! that it depends on would be built a second time.
