//! Server-sent events as model servers send them; only their data is used.
//!
//! Format: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

/// The maximum length of a line; a server that sends more is broken.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// Splits a stream of bytes into the data of events. Input may be cut anywhere.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    data: Option<String>,
}

/// A line was longer than 16 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineTooLong;

impl SseDecoder {
    /// Reads bytes and calls `event` with the data of each event that they complete. Invalid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// When a line is longer than 16 MiB.
    pub fn push(&mut self, mut bytes: &[u8], event: &mut impl FnMut(String)) -> Result<(), LineTooLong> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (head, tail) = bytes.split_at(end);
            self.line.extend_from_slice(head);
            bytes = tail.get(1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, event);
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_LINE { Err(LineTooLong) } else { Ok(()) }
    }

    /// Ends the stream; a last event without its empty line counts too.
    pub fn finish(&mut self, event: &mut impl FnMut(String)) {
        let line = std::mem::take(&mut self.line);
        self.take_line(&line, event);
        self.take_line(b"", event);
    }

    fn take_line(&mut self, line: &[u8], event: &mut impl FnMut(String)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                event(data);
            }
            return;
        }
        // Ollama reports an error within a stream as a line of plain JSON.
        let value = if line.starts_with(b"{") { Some(line) } else { line.strip_prefix(b"data:") };
        if let Some(value) = value {
            let text = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&text);
                }
                None => self.data = Some(text.into_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] =
        b": ping\r\nevent: x\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:two\n\n\n{\"error\":1}\n\ndata: [DONE]";

    #[test]
    fn any_cut_gives_the_same_events() {
        for size in 1..STREAM.len() {
            let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
            for piece in STREAM.chunks(size) {
                decoder.push(piece, &mut |data| events.push(data)).unwrap();
            }
            decoder.finish(&mut |data| events.push(data));
            assert_eq!(events, ["{\"a\":\n1}", "two", "{\"error\":1}", "[DONE]"], "pieces of {size}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_end_the_stream() {
        let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
        decoder.push(b"data: a\xff\xfeb\n\n", &mut |data| events.push(data)).unwrap();
        assert_eq!(events, ["a\u{fffd}\u{fffd}b"]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut decoder = SseDecoder::default();
        let piece = vec![b'x'; 1 << 20];
        let result = (0..32).try_for_each(|_| decoder.push(&piece, &mut |_| ()));
        assert_eq!(result, Err(LineTooLong));
    }
}
