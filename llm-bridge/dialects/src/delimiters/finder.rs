//! Finds the places in a text at which a delimiter, a line end or a backtick could be.

use memchr::memchr3;

use crate::byte_set::ByteSet;

/// How many bytes are looked for at once.
const NEEDLES: usize = 3;
/// Groups of needles whose places are remembered; with more of them every byte is looked at.
const MAX_GROUPS: usize = 8;
/// How far ahead is looked at once: whoever stops before has looked at that much for nothing.
const WINDOW: usize = 2048;
/// A text that is no longer is looked at byte by byte; most chunks are.
const SHORT: usize = 16;

/// The bytes that are looked for.
#[derive(Debug)]
pub(crate) struct Needles {
    all: ByteSet,
    /// The same in groups of what is looked for at once.
    groups: Vec<[u8; NEEDLES]>,
}

impl Needles {
    /// The bytes, those first that are in nearly every text: looked for together, they leave the other groups to be
    /// looked through at once.
    pub(super) fn new(bytes: impl IntoIterator<Item = u8>) -> Self {
        let (mut all, mut firsts) = (ByteSet::default(), Vec::new());
        for byte in bytes {
            if !all.contains(byte) {
                firsts.push(byte);
                all.insert(byte);
            }
        }
        let group = |group: &[u8]| {
            let mut needles = [group.first().copied().unwrap_or_default(); NEEDLES];
            needles.iter_mut().zip(group).for_each(|(slot, byte)| *slot = *byte);
            needles
        };
        Self { groups: firsts.chunks(NEEDLES).map(group).collect(), all }
    }

    /// Whether one of them is anywhere in the text.
    pub(crate) fn anywhere(&self, bytes: &[u8]) -> bool {
        if bytes.len() <= SHORT {
            self.all.has_any(bytes)
        } else {
            Finder::default().next(self, bytes, 0).is_some()
        }
    }
}

/// Finds the needles in one text, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    /// For each group of needles, the next place of one of them, or up to where there is none.
    seen: [usize; MAX_GROUPS],
}

impl Finder {
    /// The first place at or after `from`, which must not become less.
    pub(crate) fn next(&mut self, needles: &Needles, bytes: &[u8], from: usize) -> Option<usize> {
        let rest = bytes.get(from..)?;
        if rest.len() <= SHORT || needles.groups.len() > MAX_GROUPS {
            return rest.iter().position(|byte| needles.all.contains(*byte)).map(|found| from + found);
        }
        let mut from = from;
        loop {
            let window = bytes.get(from..bytes.len().min(from + WINDOW)).unwrap_or_default();
            let here = bytes.get(from).is_some_and(|byte| needles.all.contains(*byte));
            let mut first = bytes.len();
            for (seen, [one, two, three]) in self.seen.iter_mut().zip(&needles.groups) {
                if *seen < from || *seen == from && !here {
                    *seen = from + memchr3(*one, *two, *three, window).unwrap_or(window.len());
                }
                first = first.min(*seen);
            }
            match bytes.get(first) {
                Some(byte) if needles.all.contains(*byte) => return Some(first),
                // All have been looked for up to here.
                Some(_) => from = first,
                None => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_over_what_is_not_looked_for() {
        let needles = Needles::new(*b"\n`<[<");
        let next = |text: &str, from| Finder::default().next(&needles, text.as_bytes(), from);
        for length in [0, 1, 15, 16, 17, 64, 200, WINDOW - 1, WINDOW, WINDOW + 1, 5 * WINDOW] {
            let text = "x".repeat(length);
            assert_eq!(next(&text, 0), None);
            assert!(!needles.anywhere(text.as_bytes()));
            assert_eq!(next(&format!("{text}<x"), 0), Some(length));
            assert!(needles.anywhere(format!("{text}<x").as_bytes()));
            assert_eq!(next(&format!("<{text}`"), 1), Some(length + 1));
        }
    }

    #[test]
    fn finds_any_number_of_bytes_one_after_the_other() {
        for count in [1, NEEDLES, NEEDLES + 1, 3 * NEEDLES + 1, MAX_GROUPS * NEEDLES, 40] {
            let firsts: Vec<u8> = (b'!'..).take(count).collect();
            let needles = Needles::new(firsts.iter().copied());
            let mut text = [b'x'; 3 * WINDOW];
            assert_eq!(Finder::default().next(&needles, &text, 0), None);
            let mut places = Vec::new();
            for (index, first) in firsts.iter().rev().chain(&firsts).enumerate() {
                let place = index * 73;
                text[place] = *first;
                places.push(place);
            }
            let mut finder = Finder::default();
            let mut found = Vec::new();
            let mut from = 0;
            while let Some(place) = finder.next(&needles, &text, from) {
                found.push(place);
                from = place + 1;
            }
            assert_eq!(found, places, "{count} bytes");
        }
    }
}
