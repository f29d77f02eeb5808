//! Frames of a stream: server-sent events and lines of JSON.
//!
//! Formats: <https://html.spec.whatwg.org/multipage/server-sent-events.html>, <https://github.com/ndjson/ndjson-spec>.

use std::borrow::Cow;

use serde::Serialize;

/// The maximum length of a frame; a server that sends more is broken.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// How a stream is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// A JSON value on each line.
    Lines,
}

impl Framing {
    /// The content type of such a stream.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }

    /// Appends a frame. Lines have no event names.
    pub fn append(self, out: &mut Vec<u8>, event: Option<&str>, value: &(impl Serialize + ?Sized)) {
        if self == Self::Sse {
            if let Some(event) = event {
                out.extend_from_slice(b"event: ");
                out.extend_from_slice(event.as_bytes());
                out.push(b'\n');
            }
            out.extend_from_slice(b"data: ");
        }
        Self::append_json(out, value);
        out.extend_from_slice(if self == Self::Sse { b"\n\n" } else { b"\n" });
    }

    /// Appends a server-sent event: an object of fields that were written before, as JSON without its end, and others, of which there are some.
    pub(crate) fn append_rest(out: &mut Vec<u8>, opening: &[u8], rest: &impl Serialize) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(opening);
        let begin = out.len();
        Self::append_json(out, rest);
        if let Some(brace) = out.get_mut(begin) {
            *brace = b',';
        }
        out.extend_from_slice(b"\n\n");
    }

    /// Appends a value as one line of JSON. What cannot be written as JSON is `null`.
    pub(crate) fn append_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
        let begin = out.len();
        if serde_json::to_writer(&mut *out, value).is_err() {
            out.truncate(begin);
            out.extend_from_slice(b"null");
        }
        // Raw JSON may have line ends between its values; within a text they are escaped.
        let json = out.get_mut(begin..).unwrap_or_default();
        if memchr::memchr2(b'\n', b'\r', json).is_some() {
            json.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
    }
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'f> {
    /// The name of the event; empty if it has none.
    pub event: &'f str,
    /// Its data.
    pub data: &'f str,
}

/// A frame was longer than 16 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameTooLong;

/// Cuts a stream of bytes into frames. Input may be cut anywhere.
#[derive(Debug)]
pub struct FrameDecoder {
    framing: Framing,
    /// The part of a line that has come.
    line: Vec<u8>,
    fields: Fields,
}

/// The fields of the event that is being read.
#[derive(Debug, Default)]
struct Fields {
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

impl FrameDecoder {
    /// A decoder at the beginning of a stream.
    pub fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), fields: Fields::default() }
    }

    /// Reads bytes and calls `take` with each frame that they complete. Invalid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// When a frame is longer than 16 MiB.
    pub fn push(&mut self, mut bytes: &[u8], take: &mut impl FnMut(Frame<'_>)) -> Result<(), FrameTooLong> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (head, tail) = bytes.split_at(end);
            bytes = tail.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.fields.take_line(self.framing, head, take);
            } else {
                self.line.extend_from_slice(head);
                self.fields.take_line(self.framing, &self.line, take);
                self.line.clear();
            }
            self.fields.check()?;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_FRAME { Err(FrameTooLong) } else { Ok(()) }
    }

    /// Ends the stream; a last frame without its end counts too.
    pub fn finish(&mut self, take: &mut impl FnMut(Frame<'_>)) {
        let line = std::mem::take(&mut self.line);
        self.fields.take_line(self.framing, &line, take);
        self.fields.take_line(self.framing, b"", take);
    }
}

impl Fields {
    fn check(&self) -> Result<(), FrameTooLong> {
        if self.data.len() > MAX_FRAME || self.event.len() > MAX_FRAME { Err(FrameTooLong) } else { Ok(()) }
    }

    fn take_line(&mut self, framing: Framing, line: &[u8], take: &mut impl FnMut(Frame<'_>)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match framing {
            Framing::Lines if line.trim_ascii().is_empty() => {}
            Framing::Lines => take(Frame { event: "", data: &text(line) }),
            Framing::Sse if line.is_empty() => {
                if self.has_data {
                    let (event, data) = (text(&self.event), text(&self.data));
                    take(Frame { event: &event, data: &data });
                }
                self.event.clear();
                self.data.clear();
                self.has_data = false;
            }
            // Some servers report an error within a stream as a line of plain JSON.
            Framing::Sse if line.starts_with(b"{") => self.add_data(line),
            Framing::Sse => {
                if let Some(value) = field(line, b"data:") {
                    self.add_data(value);
                } else if let Some(value) = field(line, b"event:") {
                    self.event.clear();
                    self.event.extend_from_slice(value);
                }
            }
        }
    }

    fn add_data(&mut self, value: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }
}

fn field<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let value = line.strip_prefix(name)?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// Invalid UTF-8 becomes U+FFFD. What is valid, which is nearly all, is found to be so many bytes at a time.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &[u8] =
        b": ping\r\nevent: x\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:two\n\n\n{\"error\":1}\n\ndata: a\xffb\n\ndata: [DONE]";

    fn frames(framing: Framing, stream: &[u8], size: usize) -> Vec<(String, String)> {
        let (mut decoder, mut frames) = (FrameDecoder::new(framing), Vec::new());
        let mut take = |frame: Frame<'_>| frames.push((frame.event.to_owned(), frame.data.to_owned()));
        for piece in stream.chunks(size) {
            decoder.push(piece, &mut take).unwrap();
        }
        decoder.finish(&mut take);
        frames
    }

    #[test]
    fn any_cut_gives_the_same_frames() {
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(event, data)| ((*event).to_owned(), (*data).to_owned())).collect()
        };
        let events = pairs(&[
            ("x", "{\"a\":\n1}"),
            ("", "two"),
            ("", "{\"error\":1}"),
            ("", "a\u{fffd}b"),
            ("", "[DONE]"),
        ]);
        for size in 1..=EVENTS.len() {
            assert_eq!(frames(Framing::Sse, EVENTS, size), events, "pieces of {size}");
        }
        let lines = b"{\"a\":1}\r\n\n {\"b\":2}\n3";
        for size in 1..=lines.len() {
            let expected = pairs(&[("", "{\"a\":1}"), ("", " {\"b\":2}"), ("", "3")]);
            assert_eq!(frames(Framing::Lines, lines, size), expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_frame_without_end_is_refused() {
        let piece = vec![b'x'; 1 << 20];
        for framing in [Framing::Sse, Framing::Lines] {
            let mut decoder = FrameDecoder::new(framing);
            assert_eq!((0..32).try_for_each(|_| decoder.push(&piece, &mut |_| ())), Err(FrameTooLong));
        }
        let mut decoder = FrameDecoder::new(Framing::Sse);
        let line = [b"data:", piece.as_slice(), b"\n"].concat();
        assert_eq!((0..32).try_for_each(|_| decoder.push(&line, &mut |_| ())), Err(FrameTooLong));
    }

    #[test]
    fn what_is_written_is_read() {
        let value = serde_json::value::RawValue::from_string("{\"a\":\r\n\"\\n\"}".to_owned()).unwrap();
        for (framing, event) in [(Framing::Sse, "e"), (Framing::Lines, "")] {
            let mut out = Vec::new();
            framing.append(&mut out, Some("e"), &value);
            let expected = (event.to_owned(), "{\"a\":  \"\\n\"}".to_owned());
            assert_eq!(frames(framing, &out, 3), [expected]);
        }
    }
}
