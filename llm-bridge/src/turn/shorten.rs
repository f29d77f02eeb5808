//! Shortens a text in its middle.

use std::ops::Range;

/// Of what is kept of a text so much is its beginning, in percent; the end mostly has the outcome.
const BEGINNING: usize = 60;
/// A cut is moved to the border of a line where that leaves out no more than one in so many parts of the piece.
const SLACK: usize = 4;

/// A text of at most so many characters, with a word about what is missing.
pub(super) fn shorten(text: String, limit: usize) -> String {
    match middle(&text, limit, 40) {
        Some(middle) => {
            with_note(&text, &middle, |left_out| format!("[… {left_out} more characters were left out]"))
        }
        None => text,
    }
}

/// The part of a text that has to be left out so that it has no more than so many characters, a note of at most `note` among them; as
/// bytes. `None` where it is short enough.
///
/// Where there is no room for a note beside a beginning and an end, the note makes the text longer than the limit.
pub(super) fn middle(text: &str, limit: usize, note: usize) -> Option<Range<usize>> {
    // As many bytes as characters at least.
    if text.len() <= limit || text.char_indices().nth(limit).is_none() {
        return None;
    }
    // The line ends around the note, too.
    let room = limit.checked_sub(note + 2).unwrap_or(limit);
    let first = room * BEGINNING / 100;
    let begin = text.char_indices().nth(first).map_or(text.len(), |(at, _)| at);
    let last = room - first;
    let end = match last.checked_sub(1) {
        Some(last) => text.char_indices().rev().nth(last).map_or(0, |(at, _)| at),
        None => text.len(),
    };
    let begin_of_line = text.get(..begin)?.rfind('\n').map(|at| at + 1);
    let begin = begin_of_line.filter(|line| begin - line <= begin / SLACK).unwrap_or(begin);
    let end_of_line = text.get(end..)?.find('\n').map(|at| end + at + 1);
    let end = end_of_line.filter(|line| line - end <= (text.len() - end) / SLACK).unwrap_or(end);
    (begin < end).then_some(begin..end)
}

/// The text with a note in the place of a part; the note is told how many characters that has.
pub(super) fn with_note(text: &str, middle: &Range<usize>, note: impl FnOnce(usize) -> String) -> String {
    let [before, left_out, after] = [0..middle.start, middle.clone(), middle.end..text.len()]
        .map(|range| text.get(range).unwrap_or_default());
    let note = note(left_out.chars().count());
    let line_end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let line_begin = if after.is_empty() { "" } else { "\n" };
    [before, line_end, &note, line_begin, after].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b11_the_beginning_and_the_end_of_a_long_text_stay() {
        assert_eq!(shorten("äöü".into(), 3), "äöü");
        let long = format!("first{}last", "ß".repeat(1000));
        let short = shorten(long.clone(), 100);
        assert!(short.starts_with("firstß") && short.ends_with("ßlast"), "{short}");
        let left_out = 1009 - short.matches('ß').count() - 9;
        assert!(short.contains(&format!("\n[… {left_out} more characters were left out]\n")), "{short}");
        // Where there is no room for more, the note stands between what there is.
        assert_eq!(shorten("äöüß!".into(), 3), "ä\n[… 2 more characters were left out]\nß!");
    }

    #[test]
    fn b11_lines_are_kept_whole() {
        let lines: String = (0..400).map(|line| format!("line {line:03}\n")).collect();
        let short = shorten(lines.clone(), 500);
        let is_whole = |line: &str| line.starts_with("[… ") || lines.contains(&format!("{line}\n"));
        assert!(short.lines().all(is_whole) && short.len() > 400, "{short}");
        assert!(short.starts_with("line 000\n") && short.ends_with("line 399\n"), "{short}");
    }

    proptest! {
        #[test]
        fn b11_a_shortened_text_fits_and_has_the_ends_of_the_whole(
            text in prop_oneof!["\\PC{0,600}", "[a-zé\n]{0,600}", "(\\PC{0,40}\n){0,20}"],
            limit in 0usize..400,
        ) {
            let characters = text.chars().count();
            match middle(&text, limit, 40) {
                None => prop_assert!(characters <= limit),
                Some(middle) => {
                    prop_assert!(characters > limit && !middle.is_empty());
                    let (before, after) = (&text[..middle.start], &text[middle.end..]);
                    let kept = before.chars().count() + after.chars().count();
                    prop_assert_eq!(kept + text[middle.clone()].chars().count(), characters);
                    let short = shorten(text.clone(), limit);
                    prop_assert!(short.starts_with(before) && short.ends_with(after));
                    if limit >= 42 {
                        prop_assert!(short.chars().count() <= limit, "{} > {limit}", short.chars().count());
                    }
                }
            }
        }
    }
}
