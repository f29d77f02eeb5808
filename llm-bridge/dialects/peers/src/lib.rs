//! Compares Toolrack's scanner with other parsers of tool calls, its peers: what they find (`score`) and how fast
//! (`speed`). The README explains how to run them.

pub mod call;
pub mod case;
pub mod ours;
pub mod peer;
pub mod score;

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Runs a future that waits for nothing but itself, as those of the peers do.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::yield_now();
    }
}

/// The text in pieces of so many characters.
pub fn pieces(text: &str, characters: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((at, _)) = rest.char_indices().nth(characters) {
        let (piece, behind) = rest.split_at(at);
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}
