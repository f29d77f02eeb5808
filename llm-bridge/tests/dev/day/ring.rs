use registry_core::prelude::*;

use crate::bell::Bell;

/// Ring the bell, and return how often it has rung.
#[tool]
async fn ring(bell: Resource<Bell>) -> u64 {
    bell.ring()
}
