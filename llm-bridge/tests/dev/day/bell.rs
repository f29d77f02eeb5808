use std::sync::atomic::{AtomicU64, Ordering};

use registry_core::prelude::*;

/// A bell that all calls share.
pub struct Bell(AtomicU64);

impl Bell {
    /// Rings it, and returns how often that was done.
    pub fn ring(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The bell of this program.
#[resource]
fn bell() -> Bell {
    Bell(AtomicU64::new(0))
}
