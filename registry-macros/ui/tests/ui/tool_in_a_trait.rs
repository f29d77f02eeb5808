use registry_core::prelude::*;

trait Gauge {
    /// Gets the level of the gauge.
    #[tool]
    async fn level() -> u32;
}

fn main() {}
