//! How much of a text a candidate reads until it is decided.

use super::*;
use crate::{Offered, ParseOptions};

/// Feeds a candidate with a suffix the whole text; what comes of it, and how much of the text it has read.
fn fed(text: &str) -> (Step, usize) {
    let Found::Delimiter(delimiter, length) = Delimiters::get().at(text) else {
        panic!("no delimiter: {text}")
    };
    let mut candidate =
        Candidate::marked(delimiter.rows(None, false), delimiter.text.len()).after(&text[..length]);
    let (offered, mut index, mut flat) = (Offered::any(), 0, false);
    let mut cx = Cx {
        offered: &offered,
        parsing: ParseOptions::default(),
        live: false,
        index: &mut index,
        flat: &mut flat,
        sink: &mut |_| {},
    };
    let step = candidate.feed(text, true, &mut cx);
    (step, candidate.unsuffixed.unwrap().read())
}

#[test]
fn b1_what_is_behind_a_call_with_a_suffix_is_not_read_for_it() {
    let behind = "<tool_call:x>".repeat(100_000);
    let (step, read) = fed(&behind);
    assert!(matches!(step, Step::Reject(_)) && read < 2048, "{step:?} after {read} bytes");
    let call = "<tool_call:x>{\"name\": \"f\", \"arguments\": {}}</tool_call:x>";
    let (step, read) = fed(&format!("{call}{behind}"));
    assert!(step == Step::Done(call.len()) && read < 2048, "{step:?} after {read} bytes");
    // A long call is read in parts that grow.
    let text = "é".repeat(100_000);
    let call =
        format!("<tool_call:x>{{\"name\": \"f\", \"arguments\": {{\"a\": \"{text}\"}}}}</tool_call:x>");
    let (step, read) = fed(&format!("{call}{behind}"));
    assert!(step == Step::Done(call.len()) && read < 3 * call.len(), "{step:?} after {read} bytes");
}
