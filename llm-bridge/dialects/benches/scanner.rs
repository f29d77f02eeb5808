//! Scanner cost: per 4-character chunk in prose and inside arguments, and for whole texts.
#![allow(missing_docs)]

use std::{hint::black_box, sync::Arc};

use divan::{Bencher, counter::BytesCount, counter::ItemsCount};
use serde_json::json;
use toolrack_dialects::{Event, Offered, OfferedTool, ScanOptions, Scanner};

fn main() {
    divan::main();
}

fn tools() -> Arc<Offered> {
    let schema = json!({"properties": {"text": {"type": "string"}}});
    Arc::new(Offered::new([OfferedTool::new("write").schema(schema)]))
}

fn prose(bytes: usize) -> String {
    let line =
        "The quick brown fox jumps over the lazy dog, and nobody minds at all because it is only a test.\n";
    line.repeat(bytes / line.len() + 1)
}

/// Text as it stands in an argument: no quote, no angle bracket but one a line.
fn argument(bytes: usize) -> String {
    "let answer = compute(alpha, beta); // a < b, as it should be\\n".repeat(bytes / 60 + 1)
}

fn json_call(bytes: usize) -> String {
    format!(
        "<tool_call>\n{{\"name\": \"write\", \"arguments\": {{\"text\": \"{}\"}}}}\n</tool_call>",
        argument(bytes)
    )
}

fn xml_call(bytes: usize) -> String {
    let text = argument(bytes);
    format!(
        "<tool_call>\n<function=write>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>"
    )
}

fn pieces(text: &str) -> Vec<&str> {
    text.as_bytes().chunks(4).filter_map(|piece| std::str::from_utf8(piece).ok()).collect()
}

fn feed<'a>(pieces: impl IntoIterator<Item = &'a str>, offered: &Arc<Offered>, deltas: bool) -> usize {
    let mut scanner = Scanner::new(Arc::clone(offered), ScanOptions::default().deltas(deltas));
    let mut seen = 0;
    let mut sink = |event: Event<'_>| match event {
        Event::Text(text) => seen += text.len(),
        Event::Call(call) => seen += call.arguments.len(),
        _ => seen += 1,
    };
    for piece in pieces {
        scanner.push(piece, &mut sink);
    }
    scanner.finish(&mut sink);
    black_box(seen)
}

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

fn streamed(bencher: Bencher, text: &str, deltas: bool) {
    let offered = tools();
    let pieces = pieces(text);
    bencher
        .counter(ItemsCount::new(pieces.len()))
        .counter(BytesCount::new(text.len()))
        .bench_local(|| feed(pieces.iter().copied(), &offered, deltas));
}

fn whole(bencher: Bencher, text: &str) {
    let offered = tools();
    bencher.counter(BytesCount::new(text.len())).bench_local(|| feed([text], &offered, false));
}

#[divan::bench(args = SIZES)]
fn chunks_prose(bencher: Bencher, bytes: usize) {
    streamed(bencher, &prose(bytes), false);
}

#[divan::bench(args = SIZES)]
fn chunks_json_argument(bencher: Bencher, bytes: usize) {
    streamed(bencher, &json_call(bytes), false);
}

#[divan::bench(args = SIZES)]
fn chunks_json_argument_deltas(bencher: Bencher, bytes: usize) {
    streamed(bencher, &json_call(bytes), true);
}

#[divan::bench(args = SIZES)]
fn chunks_xml_argument(bencher: Bencher, bytes: usize) {
    streamed(bencher, &xml_call(bytes), false);
}

#[divan::bench(args = SIZES)]
fn chunks_xml_argument_deltas(bencher: Bencher, bytes: usize) {
    streamed(bencher, &xml_call(bytes), true);
}

#[divan::bench(args = SIZES)]
fn whole_prose(bencher: Bencher, bytes: usize) {
    whole(bencher, &prose(bytes));
}

#[divan::bench(args = SIZES)]
fn whole_json_argument(bencher: Bencher, bytes: usize) {
    whole(bencher, &json_call(bytes));
}

#[divan::bench(args = SIZES)]
fn whole_xml_argument(bencher: Bencher, bytes: usize) {
    whole(bencher, &xml_call(bytes));
}

#[divan::bench]
fn whole_small_call(bencher: Bencher) {
    let text = "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"text\": \"Oslo\"}}\n</tool_call>";
    whole(bencher, text);
}
