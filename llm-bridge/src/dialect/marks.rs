//! All marks of all dialects in one sorted table that is walked byte by byte, as a trie would be.

use std::sync::LazyLock;

use super::table::{Dialect, THINKING, dialects};

/// What a mark can open or close; several rows may share one.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    text: &'static str,
    /// Dialects it opens, with whether it is the beginning of the body.
    pub(super) calls: Vec<(&'static Dialect, bool)>,
    /// The row of [`THINKING`] it opens.
    pub(super) think: Option<usize>,
    /// The rows of [`THINKING`] it closes, as a bit set.
    pub(super) unthink: u32,
    /// It closes calls.
    pub(super) closes: bool,
}

/// The compiled table.
#[derive(Debug)]
pub(super) struct Marks {
    sorted: Vec<Meaning>,
    bare: Vec<&'static Dialect>,
    interest: [bool; 256],
    /// The bytes of `interest`, in groups of what one test of a block looks for.
    needles: Vec<[u8; NEEDLES]>,
}

/// How many bytes one test of a whole block looks for; more take another test each.
const NEEDLES: usize = 6;
/// Bytes that are looked at one by one first: most chunks are no longer, and often something is near.
const HEAD: usize = 16;

/// What stands at a place in the text.
pub(super) enum Found<'a> {
    Nothing,
    /// The input ends in what could still become a mark.
    Partial,
    Mark(&'a Meaning, usize),
}

static MARKS: LazyLock<Marks> = LazyLock::new(Marks::new);

impl Marks {
    pub(super) fn get() -> &'static Self {
        &MARKS
    }

    fn new() -> Self {
        let mut rows: Vec<&'static Dialect> = dialects().collect();
        // Link order is arbitrary; the order rows are asked in must not be.
        rows.sort_by_key(|row| row.name);
        let mut sorted: Vec<Meaning> = Vec::new();
        for row in &rows {
            for mark in row.marks {
                entry(&mut sorted, mark.text).calls.push((row, mark.inner));
            }
            for close in row.close {
                entry(&mut sorted, close).closes = true;
            }
        }
        for (index, (open, close)) in THINKING.iter().enumerate() {
            entry(&mut sorted, open).think = Some(index);
            entry(&mut sorted, close).unthink |= 1 << index;
        }
        sorted.retain(|mark| !mark.text.is_empty());
        sorted.sort_by_key(|mark| mark.text);
        let mut firsts: Vec<u8> =
            sorted.iter().filter_map(|mark| mark.text.bytes().next()).chain([b'\n', b'`']).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let bare = rows.into_iter().filter(|row| row.marks.is_empty()).collect();
        Self { sorted, bare, ..Self::looking_for(&firsts) }
    }

    /// A table without marks, whose text is looked through for these bytes.
    fn looking_for(firsts: &[u8]) -> Self {
        let mut interest = [false; 256];
        for first in firsts {
            if let Some(slot) = interest.get_mut(usize::from(*first)) {
                *slot = true;
            }
        }
        let group = |group: &[u8]| {
            let mut needles = [group.first().copied().unwrap_or_default(); NEEDLES];
            needles.iter_mut().zip(group).for_each(|(slot, first)| *slot = *first);
            needles
        };
        let needles = firsts.chunks(NEEDLES).map(group).collect();
        Self { sorted: Vec::new(), bare: Vec::new(), interest, needles }
    }

    /// The dialects that have no mark.
    pub(super) fn bare(&self) -> &[&'static Dialect] {
        &self.bare
    }

    fn is_interesting(&self, byte: u8) -> bool {
        self.interest.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// The first byte at or after `from` at which a mark, a line end or a backtick could be.
    pub(super) fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let (head, rest) = bytes.get(from..)?.split_at_checked(HEAD).unwrap_or((bytes.get(from..)?, &[]));
        if let Some(found) = head.iter().position(|byte| self.is_interesting(*byte)) {
            return Some(from + found);
        }
        let mut at = from + head.len();
        // Whole blocks without any needle are passed over; the test is written so that it becomes vector code.
        for block in rest.chunks_exact(64) {
            let hit = |needles: &[u8; NEEDLES]| {
                block.iter().fold(false, |hit, byte| {
                    hit | needles.iter().fold(false, |one, needle| one | (byte == needle))
                })
            };
            if self.needles.iter().any(hit) {
                break;
            }
            at += block.len();
        }
        let tail = bytes.get(at..)?;
        tail.iter().position(|byte| self.is_interesting(*byte)).map(|found| at + found)
    }

    /// The longest mark with which `text` begins.
    pub(super) fn at(&self, text: &str) -> Found<'_> {
        let mut range = self.sorted.as_slice();
        let mut best = None;
        for (depth, byte) in text.bytes().enumerate() {
            let low = range.partition_point(|mark| mark.text.as_bytes().get(depth) < Some(&byte));
            let high = range.partition_point(|mark| mark.text.as_bytes().get(depth) <= Some(&byte));
            range = range.get(low..high).unwrap_or(&[]);
            match range.first() {
                None => return best.map_or(Found::Nothing, |mark| Found::Mark(mark, depth_of(mark))),
                Some(mark) if mark.text.len() == depth + 1 => {
                    if range.len() == 1 {
                        return Found::Mark(mark, depth + 1);
                    }
                    best = Some(mark);
                }
                Some(_) => {}
            }
        }
        Found::Partial
    }

    /// The longest whole mark at the start of `text` when no more text will come.
    pub(super) fn at_end(&self, text: &str) -> Found<'_> {
        let best =
            self.sorted.iter().filter(|mark| text.starts_with(mark.text)).max_by_key(|mark| mark.text.len());
        best.map_or(Found::Nothing, |mark| Found::Mark(mark, depth_of(mark)))
    }
}

fn depth_of(mark: &Meaning) -> usize {
    mark.text.len()
}

fn entry<'a>(sorted: &'a mut Vec<Meaning>, text: &'static str) -> &'a mut Meaning {
    let index = sorted.iter().position(|mark| mark.text == text).unwrap_or_else(|| {
        sorted.push(Meaning { text, ..Meaning::default() });
        sorted.len() - 1
    });
    // The index was found or made on the line above.
    #[allow(clippy::indexing_slicing)]
    &mut sorted[index]
}

impl Meaning {
    /// The dialects it can open: the pinned one only, and none by a weak mark if `strong` is asked for.
    pub(super) fn rows(&self, only: Option<&str>, strong: bool) -> Vec<(&'static Dialect, bool)> {
        let fits = |row: &&(&'static Dialect, bool)| {
            only.is_none_or(|only| only == row.0.name) && !(strong && row.1)
        };
        self.calls.iter().filter(fits).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_whole_marks_and_what_could_become_one() {
        let marks = Marks::get();
        assert!(matches!(marks.at("<tool_call>{"), Found::Mark(mark, 11) if mark.calls.len() == 2));
        assert!(matches!(marks.at("<think"), Found::Partial));
        assert!(matches!(marks.at("<thinking>"), Found::Mark(mark, 10) if mark.think.is_some()));
        assert!(matches!(marks.at("<thin air"), Found::Nothing));
        assert!(matches!(marks.at_end("<think"), Found::Nothing));
    }

    #[test]
    fn passes_over_what_cannot_begin_a_mark() {
        let marks = Marks::get();
        for length in [0, 1, 15, 16, 17, 64, 80, 200] {
            let text = "x".repeat(length);
            assert_eq!(marks.next(text.as_bytes(), 0), None);
            assert_eq!(marks.next(format!("{text}<x").as_bytes(), 0), Some(length));
            assert_eq!(marks.next(format!("<{text}`").as_bytes(), 1), Some(length + 1));
        }
    }

    #[test]
    fn finds_any_number_of_first_bytes_in_blocks() {
        for count in [1, NEEDLES, NEEDLES + 1, 3 * NEEDLES + 1] {
            let firsts: Vec<u8> = (b'!'..).take(count).collect();
            let marks = Marks::looking_for(&firsts);
            let text = [b'x'; 300];
            assert_eq!(marks.next(&text, 0), None);
            for first in firsts {
                for place in [HEAD, HEAD + 63, HEAD + 64, 299] {
                    let mut text = text;
                    text[place] = first;
                    assert_eq!(marks.next(&text, 0), Some(place), "{count} bytes, {first}");
                }
            }
        }
        let marks = Marks::get();
        let looked_for = |byte: u8| marks.needles.iter().any(|group| group.contains(&byte));
        assert!((0..=255).all(|byte| marks.is_interesting(byte) == looked_for(byte)));
    }
}
