//! Any answer of a model server, however it is cut, gives the same pieces or the same failure. The variable `API` says which wire.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolrack_apis::{Failure, Piece, Wire, ollama::OllamaWire, openai::OpenAiWire};

static WIRE: LazyLock<Box<dyn Wire>> = LazyLock::new(|| match std::env::var("API").as_deref() {
    Ok("ollama") => Box::new(OllamaWire::default()),
    _ => Box::new(OpenAiWire),
});

fn read<'b>(kind: &str, parts: impl Iterator<Item = &'b [u8]>) -> (Vec<Piece>, Result<(), Failure>) {
    let (mut decoder, mut pieces) = (WIRE.decoder(kind), Vec::new());
    for part in parts {
        if let Err(failure) = decoder.push(part, &mut pieces) {
            return (pieces, Err(failure));
        }
    }
    let end = decoder.finish(&mut pieces);
    (pieces, end)
}

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (size, whole, bytes) = input;
    let kind = if whole { "application/json" } else { "text/event-stream" };
    let at_once = read(kind, std::iter::once(bytes));
    let in_parts = read(kind, bytes.chunks(usize::from(size).max(1)));
    assert_eq!(at_once, in_parts);
    let parts = http::Response::builder().status(500).body(()).unwrap().into_parts().0;
    assert!(!WIRE.failure(&parts, bytes).message.is_empty());
});
