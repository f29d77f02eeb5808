use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// From where to where.
    (from, to): (u8, u8),
) -> u8 {
    from + to
}

fn main() {}
