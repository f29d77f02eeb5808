//! The parts of [`Decode`] that the APIs share: a stream of frames, and a reply in one body.

use crate::{
    Decode, Failure, Frame, FrameDecoder, Framing, Piece, Progress, json::values_in, openai::error_text,
};

/// The maximum size of a reply that is not streamed.
const MAX_REPLY: usize = 64 * 1024 * 1024;
/// How many values an event or a reply may consist of: each takes up to a hundred times its bytes in memory.
const MAX_VALUES: usize = 500_000;
/// How much of a reply without an answer is quoted, in characters.
const MAX_QUOTED: usize = 300;

/// Reads one frame, and says how far the answer is behind it.
type ReadFrame = fn(Frame<'_>, &mut Vec<Piece>) -> Result<Progress, Failure>;
/// Reads a reply that is a JSON object; whether there is an answer in it.
type ReadReply = fn(&str, &mut Vec<Piece>) -> Result<bool, Failure>;

/// Decodes a stream of frames.
#[derive(Debug)]
pub(crate) struct StreamDecoder {
    frames: FrameDecoder,
    progress: Progress,
    read: ReadFrame,
}

impl StreamDecoder {
    pub(crate) fn new(framing: Framing, read: ReadFrame) -> Self {
        Self { frames: FrameDecoder::new(framing), progress: Progress::Answering, read }
    }
}

/// Refuses what has very many values before they are made.
fn check_values(json: &str) -> Result<(), Failure> {
    if json.len() <= MAX_VALUES || values_in(json.as_bytes()) <= MAX_VALUES {
        return Ok(());
    }
    Err(Failure::of_upstream(format!("what it sent has more than {MAX_VALUES} values")))
}

/// Reads a frame, unless the answer is over or has failed.
fn take(
    frame: Frame<'_>,
    read: ReadFrame,
    progress: &mut Progress,
    pieces: &mut Vec<Piece>,
) -> Result<(), Failure> {
    if *progress == Progress::Done {
        return Ok(());
    }
    let now = check_values(frame.data).and_then(|()| read(frame, pieces));
    *progress = now.as_ref().map_or(Progress::Done, |now| (*now).max(*progress));
    now.map(|_| ())
}

impl Decode for StreamDecoder {
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let Self { frames, progress, read } = self;
        let mut result = Ok(());
        let pushed = frames.push(bytes, &mut |frame| {
            if result.is_ok() {
                result = take(frame, *read, progress, pieces);
            }
        });
        result?;
        pushed.map_err(|_| Failure::of_upstream("a line of its stream is over 16 MiB"))
    }

    fn finish(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let Self { frames, progress, read } = self;
        let mut result = Ok(());
        frames.finish(&mut |frame| {
            if result.is_ok() {
                result = take(frame, *read, progress, pieces);
            }
        });
        result?;
        if self.progress == Progress::Answering {
            return Err(Failure::of_upstream("its stream ended before its answer did"));
        }
        self.progress = Progress::Done;
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

/// Decodes a reply that is not streamed.
#[derive(Debug)]
pub(crate) struct WholeDecoder {
    body: Vec<u8>,
    progress: Progress,
    read: ReadReply,
}

impl WholeDecoder {
    pub(crate) fn new(read: ReadReply) -> Self {
        Self { body: Vec::new(), progress: Progress::Answering, read }
    }
}

impl Decode for WholeDecoder {
    fn push(&mut self, bytes: &[u8], _: &mut Vec<Piece>) -> Result<(), Failure> {
        self.body.extend_from_slice(bytes);
        if self.body.len() > MAX_REPLY {
            return Err(Failure::of_upstream("its reply is over 64 MiB"));
        }
        Ok(())
    }

    fn finish(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        self.progress = Progress::Done;
        let body = std::mem::take(&mut self.body);
        let body = String::from_utf8_lossy(&body);
        check_values(&body)?;
        if body.trim_start().starts_with('{') && (self.read)(&body, pieces)? {
            return Ok(());
        }
        let quoted: String = error_text(&body).chars().take(MAX_QUOTED).collect();
        Err(Failure::of_upstream(format!("its reply has no answer in it: {quoted}")))
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Wire, openai::OpenAiWire};

    fn list(many: usize) -> String {
        format!("[{}]", vec!["1"; many].join(","))
    }

    #[test]
    fn a32_an_answer_has_so_many_values_and_no_more() {
        let error = |decoder: &mut dyn Decode, body: &str| {
            let mut pieces = Vec::new();
            let read = decoder.push(body.as_bytes(), &mut pieces).and_then(|()| decoder.finish(&mut pieces));
            read.unwrap_err().message
        };
        let whole = |body: &str| error(&mut *OpenAiWire.decoder("application/json"), body);
        let event =
            |body: &str| error(&mut *OpenAiWire.decoder("text/event-stream"), &format!("data: {body}\n\n"));
        let failed = |many: usize| format!("{{\"error\":{{\"message\":\"no\",\"a\":{}}}}}", list(many));
        assert!(whole(&list(MAX_VALUES - 1)).starts_with("its reply has no answer in it: [1,1"));
        assert!(event(&failed(MAX_VALUES - 4)).starts_with("{\"message\":\"no\","));
        for refused in [whole(&list(MAX_VALUES)), whole(&failed(MAX_VALUES)), event(&failed(MAX_VALUES - 3))]
        {
            assert_eq!(refused, "what it sent has more than 500000 values");
        }
    }
}
