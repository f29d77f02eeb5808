//! A tool that a test has written, and removes.

use registry_core::prelude::*;

/// Adds something to a number.
#[tool]
async fn dev_probe(
    /// The number.
    number: i64,
) -> i64 {
    number + 1
}
