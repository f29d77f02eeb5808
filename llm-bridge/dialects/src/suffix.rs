//! Tags that carry the suffix of a checkpoint, `<tool_call:SUFFIX>`: their bodies are read without it.

use memchr::memmem;

use super::body::{cut, rest};

/// A longer suffix is none.
const MAX_SUFFIX: usize = 64;
/// So much is read at first; then as much again as has been read.
const FIRST_PART: usize = 512;

/// The length of a suffix, with its colon, and of the bracket after it; nothing if this is none. An error while more
/// text decides.
pub(super) fn length(text: &str) -> Result<Option<usize>, ()> {
    let Some(suffix) = text.strip_prefix(':') else {
        return if text.is_empty() { Err(()) } else { Ok(None) };
    };
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = suffix.bytes().take(MAX_SUFFIX).take_while(part).count();
    match suffix.as_bytes().get(length) {
        None if length < MAX_SUFFIX => Err(()),
        Some(b'>') if length > 0 => Ok(Some(length + 2)),
        _ => Ok(None),
    }
}

/// A text without the suffix of its tags.
#[derive(Debug)]
pub(super) struct Unsuffixed {
    /// With its colon and the bracket after it.
    suffix: String,
    plain: String,
    /// How much of the text is in `plain`.
    read: usize,
    /// Where in `plain` a suffix stood.
    cuts: Vec<usize>,
}

impl Unsuffixed {
    /// `delimiter` is a tag with the suffix.
    pub(super) fn new(delimiter: &str) -> Self {
        let suffix = delimiter.find(':').map_or("", |at| rest(delimiter, at)).to_owned();
        Self { suffix, plain: String::new(), read: 0, cuts: Vec::new() }
    }

    /// How much of the text has been read.
    #[cfg(test)]
    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// How much of `text` to read next. The parts grow with what has been read, so that a long text has few.
    pub(super) fn part<'t>(&self, text: &'t str) -> &'t str {
        let end = (2 * self.read).max(FIRST_PART).min(text.len());
        cut(text, 0..text.ceil_char_boundary(end))
    }

    /// Reads on in `text`, which has grown, and gives all of it that is certain.
    pub(super) fn feed(&mut self, text: &str, eof: bool) -> &str {
        while let Some(at) = memmem::find(rest(text, self.read).as_bytes(), self.suffix.as_bytes()) {
            self.plain.push_str(cut(text, self.read..self.read + at));
            self.cuts.push(self.plain.len());
            self.plain.push('>');
            self.read += at + self.suffix.len();
        }
        // A suffix may have begun at the end.
        let held = if eof { 0 } else { self.suffix.len() - 1 };
        let end = text.floor_char_boundary(text.len().saturating_sub(held)).max(self.read);
        self.plain.push_str(cut(text, self.read..end));
        self.read = end;
        &self.plain
    }

    /// The place in the text that has become this one.
    pub(super) fn original(&self, at: usize) -> usize {
        at + (self.suffix.len() - 1) * self.cuts.partition_point(|cut| *cut < at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_text() {
        let text = "<a:x1>é:x <b:x1></b:x1>:x";
        for size in [1, 2, 100] {
            let mut tags = Unsuffixed::new("<a:x1>");
            let mut end = 0;
            while end < text.len() {
                end = text.ceil_char_boundary((end + size).min(text.len()));
                tags.feed(&text[..end], false);
            }
            assert_eq!(tags.feed(text, true), "<a>é:x <b></b>:x");
            let places = [0, 2, 3, 10].map(|at| tags.original(at));
            assert_eq!(places, [0, 2, 6, 13]);
            assert_eq!(tags.original(tags.plain.len()), text.len());
        }
        for (text, found) in
            [(":x>", Ok(Some(3))), (":", Err(())), ("", Err(())), (":>", Ok(None)), (": x>", Ok(None))]
        {
            assert_eq!(length(text), found, "{text}");
        }
    }
}
