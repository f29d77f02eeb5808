//! Any text, cut anywhere: nothing panics, no byte is lost, and the pieces make no difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolrack_dialects::Call;
use toolrack_dialects_fuzz::{
    Setup, assert_calls_are_whole,
    common::{Seen, every, parsed, rebuilt, scan},
    text,
};

/// All but how the arguments are cut into deltas.
fn without_deltas(seen: &[Seen]) -> Vec<&Seen> {
    seen.iter().filter(|event| !matches!(event, Seen::Delta(..))).collect()
}

/// The text, the thinking and the calls; how calls that came to nothing are counted aside.
fn reading(seen: &[Seen]) -> (String, String, Vec<Call>) {
    let parsed = parsed(seen);
    let calls = parsed.calls.into_iter().map(|mut call| {
        call.index = 0;
        call
    });
    (parsed.content, parsed.reasoning, calls.collect())
}

/// Whether a call was mended, or given up.
fn mended(seen: &[Seen]) -> bool {
    seen.iter().any(|event| match event {
        Seen::Call(call) => call.repaired,
        Seen::Aborted(..) => true,
        _ => false,
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some((setup, bytes)) = Setup::split(bytes) else { return };
    let text = text(bytes);
    let whole = scan(&text, &[], &setup.offered, &setup.options);
    for cuts in [setup.cuts(&text), every(&text, 1)] {
        let pieces = scan(&text, &cuts, &setup.offered, &setup.options);
        assert_calls_are_whole(&pieces, setup.options.deltas);
        assert_eq!(without_deltas(&pieces), without_deltas(&whole), "cut at {cuts:?}: {text:?}");
    }
    assert_calls_are_whole(&whole, setup.options.deltas);
    assert_eq!(rebuilt(&whole), text);
    let deltas = !setup.options.deltas;
    let other = setup.options.deltas(deltas);
    let other = scan(&text, &[], &setup.offered, &other);
    // What deltas have reported already cannot be mended any more.
    if !mended(&whole) && !mended(&other) {
        assert_eq!(reading(&other), reading(&whole), "with deltas, and without: {text:?}");
    }
});
