//! What the targets share: how the fuzzer's bytes become a text and the way it is read.

#[path = "../../tests/dialects/cases.rs"]
mod cases;
#[path = "../../tests/dialects/common.rs"]
pub mod common;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use common::Seen;
use serde_json::{Map, Value, json};
use toolrack_dialects::{Offered, OfferedTool, ScanOptions, Tag, dialects};

/// Pieces that belong to no one dialect.
const PIECES: &[&str] = &[
    "f",
    "a",
    "n",
    "x",
    "1",
    "true",
    "null",
    "{}",
    "{\"name\": \"f\", ",
    "{“name”: “f”, ",
    "“arguments”: {“a”: “x”}}",
    "“",
    "”",
    "\"arguments\": {\"a\": \"x\"}}",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    ", ",
    ": ",
    "; ",
    "(",
    ")",
    "=",
    "```json\n",
    "```\n",
    "```",
    "`",
    "\n",
    "\r\n",
    " ",
    "<",
    ">",
    "</",
    "TAG: x\n",
    "é",
    "｜",
    "🙂",
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<|channel>thought\n",
    "<channel|>",
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    "<seed:think>",
    "</seed:think>",
];

/// The common pieces, and for each dialect its delimiters and a call as it is written, whole and in parts.
static VOCABULARY: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut pieces: Vec<String> = PIECES.iter().map(|piece| (*piece).to_owned()).collect();
    let mut add = |piece: &str| {
        if !piece.is_empty() && !pieces.iter().any(|known| known == piece) {
            pieces.push(piece.to_owned());
        }
    };
    for row in dialects() {
        row.delimiters.iter().for_each(|delimiter| add(delimiter.text));
        row.close.iter().for_each(|close| add(close));
        for (name, key, value) in [("f", "a", "x"), ("Name", "Key", "Value")] {
            let arguments = Map::from_iter([(key.to_owned(), Value::from(value))]);
            let Some(call) = row.call(name, &arguments) else { continue };
            if name == "f" {
                add(&call);
            } else {
                call.split(name)
                    .flat_map(|part| part.split(key))
                    .flat_map(|part| part.split(value))
                    .for_each(&mut add);
            }
        }
    }
    pieces
});

/// The text these bytes stand for: a byte that UTF-8 never has, and the one after it, are a piece of the vocabulary.
pub fn text(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while let Some(place) = bytes.iter().position(|byte| *byte >= 0xf8) {
        text.push_str(&String::from_utf8_lossy(&bytes[..place]));
        let high = usize::from(bytes[place] - 0xf8);
        let low = usize::from(bytes.get(place + 1).copied().unwrap_or_default());
        text.push_str(&VOCABULARY[(high << 8 | low) % VOCABULARY.len()]);
        bytes = bytes.get(place + 2..).unwrap_or_default();
    }
    text + &String::from_utf8_lossy(bytes)
}

/// How a text is read. In the bytes of a case it stands before the text.
pub struct Setup {
    pub options: ScanOptions,
    pub offered: Arc<Offered>,
    /// The characters of the pieces, over and over.
    pub sizes: [usize; 4],
}

impl Setup {
    /// The setup, and the bytes after it.
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let ([flags, sizes @ ..], rest) = bytes.split_first_chunk::<5>()?;
        let cap = if flags & 0x40 == 0 { ScanOptions::default().max_call_bytes } else { 40 };
        let options =
            ScanOptions::default().thinking(flags & 1 != 0).deltas(flags & 2 != 0).max_call_bytes(cap);
        let sizes = sizes.map(|size| usize::from(size % 16) + 1);
        Some((Self { options, offered: offered(flags >> 2 & 3), sizes }, rest))
    }

    /// Where the text is cut.
    pub fn cuts(&self, text: &str) -> Vec<usize> {
        let mut sizes = self.sizes.iter().cycle();
        let mut left = 0;
        let mut cuts = Vec::new();
        for (place, _) in text.char_indices() {
            if left == 0 {
                cuts.push(place);
                left = sizes.next().copied().unwrap_or(1);
            }
            left -= 1;
        }
        cuts
    }
}

/// One of four ways of offering tools.
fn offered(kind: u8) -> Arc<Offered> {
    let schema = json!({"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}});
    Arc::new(match kind {
        0 => Offered::any(),
        1 => Offered::none(),
        _ => {
            let mut tag = Tag::new("TAG");
            tag.strip_from_display = kind == 2;
            Offered::new([OfferedTool::new("f").schema(schema).tag(tag)])
        }
    })
}

/// Every call that was begun ends once, its deltas are its arguments, and these are a JSON object.
pub fn assert_calls_are_whole(seen: &[Seen], deltas: bool) {
    let mut open: HashMap<usize, String> = HashMap::new();
    for event in seen {
        match event {
            Seen::Begin(index, _) => {
                assert!(
                    deltas && open.insert(*index, String::new()).is_none(),
                    "{index} begins again: {seen:?}"
                );
            }
            Seen::Delta(index, part) => {
                open.get_mut(index)
                    .unwrap_or_else(|| panic!("{index} has not begun: {seen:?}"))
                    .push_str(part);
            }
            Seen::Call(call) => {
                let arguments: Result<Map<String, Value>, _> = serde_json::from_str(&call.arguments);
                assert!(arguments.is_ok(), "no JSON object: {call:?}");
                if deltas {
                    assert_eq!(open.remove(&call.index).as_ref(), Some(&call.arguments), "{seen:?}");
                }
            }
            Seen::Aborted(index, ..) => drop(open.remove(index)),
            _ => {}
        }
    }
    assert!(open.is_empty(), "without an end: {open:?} in {seen:?}");
}
