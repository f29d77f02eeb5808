use registry_core::prelude::*;

struct Rain;

#[tool]
impl Rain {
    /// Gets the level of the rain gauge.
    async fn level(&self) -> u32 {
        1
    }
}

fn main() {}
