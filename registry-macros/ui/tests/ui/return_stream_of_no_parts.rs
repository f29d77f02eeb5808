use std::{
    pin::Pin,
    task::{Context, Poll},
};

use registry_core::prelude::*;

/// Counts.
#[tool]
fn count() -> impl Stream<Item = u8> + Send {
    Numbers
}

struct Numbers;

impl Stream for Numbers {
    type Item = u8;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u8>> {
        Poll::Ready(None)
    }
}

fn main() {}
