use registry_core::prelude::*;

struct Flood;

type Measured<T> = std::result::Result<T, Flood>;

mod alias {
    pub type Result<T> = super::Measured<T>;
}

/// Gets the level of the rain gauge.
#[tool]
async fn level() -> alias::Result<u32> {
    Err(Flood)
}

fn main() {}
