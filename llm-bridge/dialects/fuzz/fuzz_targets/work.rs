//! The work for a text grows with its length, and what is held of it does not.
//!
//! The measure is memory, which is the same in every run. That reading does not go over a text again and again
//! without keeping any of it shows in the time a case takes: the texts are long enough for `-timeout` to tell.
#![no_main]

use std::alloc::System;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use toolrack_dialects::{Event, Scanner};
use toolrack_dialects_fuzz::{Setup, text};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The most memory one unfinished call may take.
const CAP: usize = 2 << 10;
const SHORT: usize = 8 << 10;
const LONG: usize = 128 << 10;

/// What reading a text takes, in bytes.
#[derive(Debug)]
struct Work {
    /// All that was allocated on the way.
    allocated: usize,
    /// The most that was held between two pieces or at an event.
    held: usize,
    /// All that was reported.
    reported: usize,
}

fn read(text: &str, setup: &Setup) -> Work {
    let cuts = setup.cuts(text);
    let options = setup.options.clone().max_call_bytes(CAP);
    let (held, allocated) = (ALLOCATOR.allocated(), ALLOCATOR.total_allocated());
    let mut work = Work { allocated: 0, held: 0, reported: 0 };
    let mut scanner = Scanner::new(setup.offered.clone(), options);
    let now = || ALLOCATOR.allocated().saturating_sub(held);
    let mut sink = |event: Event<'_>| {
        work.held = work.held.max(now());
        work.reported += match event {
            Event::Text(text) | Event::Reasoning(text) | Event::Frame(text) => text.len(),
            Event::CallBegin { name, .. } => name.len(),
            Event::CallDelta { arguments, .. } => arguments.len(),
            Event::Call(call) => call.source.len() + call.arguments.len() + call.name.len(),
            Event::Aborted { source, .. } => source.len(),
        };
    };
    let ends = cuts.iter().copied().skip(1).chain([text.len()]);
    for (begin, end) in cuts.iter().copied().zip(ends) {
        scanner.push(&text[begin..end], &mut sink);
        sink(Event::Text(""));
    }
    scanner.finish(&mut sink);
    work.allocated = ALLOCATOR.total_allocated() - allocated;
    work
}

fuzz_target!(|bytes: &[u8]| {
    let Some((mut setup, bytes)) = Setup::split(bytes) else { return };
    // Larger pieces: there are many of them as it is.
    setup.sizes = setup.sizes.map(|size| size * 8);
    // A beginning, and what comes after it over and over.
    let (begin, repeated) = match bytes.split_first() {
        Some((at, bytes)) => bytes.split_at(usize::from(*at).min(bytes.len())),
        None => return,
    };
    let (begin, repeated) = (text(begin), text(repeated));
    if repeated.is_empty() {
        return;
    }
    let long = |length: usize| format!("{begin}{}", repeated.repeat(length / repeated.len()));
    let (short, long) = (long(SHORT), long(LONG));
    let (few, many) = (read(&short, &setup), read(&long, &setup));
    let reported = || format!("{few:?}, then {many:?}: {begin:?} and over and over {repeated:?}");
    // As much for each byte, with room for how buffers grow.
    let most = |few: usize| 2 * few * LONG / SHORT + (64 << 10);
    assert!(many.allocated <= most(few.allocated), "{}", reported());
    assert!(many.reported <= most(few.reported), "{}", reported());
    // A call, and a line that could still be a tag line; a buffer may have twice the room it needs.
    assert!(many.held <= 4 * CAP + (80 << 10), "{}", reported());
});
