use registry_core::prelude::*;

/// Says hello.
#[tool]
async fn hello(
    /// A picture.
    picture: Vec<u8>,
    /// Another.
    more: Option<&[u8]>,
) -> usize {
    picture.len() + more.map_or(0, <[u8]>::len)
}

fn main() {}
