//! What the families have in common: how a body is fed, what it finds, and the choice of the dialect that owns it.

use std::ops::Range;

use super::{
    Event,
    fence::Fence,
    json::JsonBody,
    offered::Offered,
    table::{Dialect, Family},
    xml::XmlBody,
};

/// What a body needs from the scanner.
pub(super) struct Cx<'a> {
    pub(super) offered: &'a Offered,
    /// Deltas are wanted, and this body may give them before it is complete.
    pub(super) live: bool,
    pub(super) index: &'a mut usize,
    pub(super) sink: &'a mut dyn FnMut(Event<'_>),
}

impl Cx<'_> {
    /// Announces a call and returns its index.
    pub(super) fn begin(&mut self, name: &str, dialect: &'static str) -> usize {
        let index = *self.index;
        *self.index += 1;
        (self.sink)(Event::CallBegin { index, name, dialect });
        index
    }

    pub(super) fn delta(&mut self, index: usize, arguments: &str) {
        if !arguments.is_empty() {
            (self.sink)(Event::CallDelta { index, arguments });
        }
    }
}

/// White space around a body is looked through this far, so that its length costs nothing.
const MAX_BLANK: usize = 256;

/// A call that has been read but not yet committed.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) repaired: bool,
    /// Where its source ends.
    pub(super) end: usize,
    /// Its index if it has been announced.
    pub(super) index: Option<usize>,
    /// It stands on its name alone.
    pub(super) bare_name: bool,
}

/// A call that had begun when its body was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// Its index if it has been announced.
    pub(super) index: Option<usize>,
    /// It was more than the mention of a mark.
    pub(super) meant: bool,
}

/// How far a body has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It needs more text.
    More,
    /// It is complete and ends here.
    Done(usize),
    /// It is no call, which is known here; the position does not depend on how the text was cut.
    Reject(usize),
}

/// A possible call, from its mark on.
#[derive(Debug)]
pub(super) struct Candidate {
    /// What is given back as text, without being looked at again, if this is no call.
    pub(super) lead: usize,
    rows: Vec<(&'static Dialect, bool)>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// Several dialects share the mark.
    Undecided,
    Json(&'static Dialect, Box<JsonBody>),
    Xml(&'static Dialect, Box<XmlBody>),
    Fence(Box<Fence>),
}

/// Whether a body of some family could begin with this text.
pub(super) enum Lead {
    Yes,
    No,
    More,
}

impl Candidate {
    /// After a mark of this many bytes.
    pub(super) fn marked(rows: Vec<(&'static Dialect, bool)>, lead: usize) -> Self {
        Self { lead, rows, body: Body::Undecided }
    }

    /// A body that begins without a mark.
    pub(super) fn bare(row: &'static Dialect, alone: bool) -> Option<Self> {
        let Family::Json(style) = row.family else { return None };
        let body = Body::Json(row, Box::new(JsonBody::new(row, style, 0, true, alone)));
        Some(Self { lead: 1, rows: Vec::new(), body })
    }

    /// A code fence whose body may be calls.
    pub(super) fn fence(fence: Fence) -> Self {
        Self { lead: fence.opener(), rows: Vec::new(), body: Body::Fence(Box::new(fence)) }
    }

    pub(super) fn dialect(&self) -> &'static str {
        match &self.body {
            Body::Undecided => "",
            Body::Json(row, _) | Body::Xml(row, _) => row.name,
            Body::Fence(fence) => fence.dialect(),
        }
    }

    pub(super) fn is_fence(&self) -> bool {
        matches!(self.body, Body::Fence(_))
    }

    /// The backticks of the fence that this candidate turned out to be, or 0.
    pub(super) fn fence_ticks(&self) -> usize {
        if let Body::Fence(fence) = &self.body { fence.ticks() } else { 0 }
    }

    /// Reads on; `text` begins where the candidate begins.
    pub(super) fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        if matches!(self.body, Body::Undecided) {
            match self.decide(text, eof) {
                Ok(body) => self.body = body,
                Err(step) => return step,
            }
        }
        match &mut self.body {
            Body::Undecided => Step::Reject(self.lead),
            Body::Json(_, body) => body.feed(text, eof, cx),
            Body::Xml(_, body) => body.feed(text, eof, cx),
            Body::Fence(fence) => fence.feed(text, eof, cx),
        }
    }

    fn decide(&self, text: &str, eof: bool) -> Result<Body, Step> {
        let inner = self.rows.iter().any(|(_, inner)| *inner);
        let blank = cut(text, self.lead..text.len());
        let mut start = if inner { 0 } else { text.len() - blank.trim_start().len() };
        if start > self.lead + MAX_BLANK {
            return Err(Step::Reject(self.lead + MAX_BLANK));
        }
        let mut rest = cut(text, start..text.len());
        let mut more = false;
        if rest.starts_with("```") {
            // A fence inside the marks: its first line is passed over, its end is noise before the closing mark.
            let line = cut(rest, 0..rest.floor_char_boundary(MAX_BLANK));
            match line.find('\n') {
                Some(end) => {
                    let inside = cut(rest, end..rest.len()).trim_start();
                    start = text.len() - inside.len();
                    rest = inside;
                }
                None => more = line.len() == rest.len(),
            }
        } else if !rest.is_empty() && "```".starts_with(rest) {
            more = true;
        }
        for (row, _) in &self.rows {
            let lead = match row.family {
                Family::Json(_) => super::json::lead(rest),
                Family::Xml(style) => super::xml::lead(&style, rest),
            };
            match lead {
                Lead::Yes => {
                    return Ok(match row.family {
                        Family::Json(style) => {
                            Body::Json(row, Box::new(JsonBody::new(row, style, start, false, false)))
                        }
                        Family::Xml(style) => {
                            Body::Xml(row, Box::new(XmlBody::new(row, style, start, !inner)))
                        }
                    });
                }
                Lead::More => more = true,
                Lead::No => {}
            }
        }
        Err(if more && !eof { Step::More } else { Step::Reject(if more { text.len() } else { start }) })
    }

    /// The calls read so far, in their order.
    pub(super) fn take_ready(&mut self) -> Vec<Ready> {
        match &mut self.body {
            Body::Undecided => Vec::new(),
            Body::Json(_, body) => body.take_ready(),
            Body::Xml(_, body) => body.take_ready(),
            Body::Fence(fence) => fence.take_ready(),
        }
    }

    /// The call that had begun when the body was given up.
    pub(super) fn unfinished(&mut self) -> Option<Unfinished> {
        match &mut self.body {
            Body::Json(_, body) => body.unfinished(),
            Body::Xml(_, body) => body.unfinished(),
            Body::Undecided | Body::Fence(_) => None,
        }
    }

    /// Where the JSON array begins that is none of calls, so that nothing in it is one.
    pub(super) fn list(&self) -> Option<usize> {
        if let Body::Json(_, body) = &self.body { body.foreign() } else { None }
    }

    /// Whether the calls read so far stand though what followed them could not be read.
    pub(super) fn keeps_ready(&self) -> bool {
        match &self.body {
            Body::Json(row, body) => !row.marks.is_empty() && body.foreign().is_none(),
            Body::Xml(..) => true,
            Body::Undecided | Body::Fence(_) => false,
        }
    }
}

/// The part of `text` in `range`; nothing where that is no part of it.
pub(super) fn cut(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// Where the white space (and `stray` bytes) that begins at `from` ends; nothing if it is too long to look through.
pub(super) fn ahead(text: &str, from: usize, stray: &[u8]) -> Option<usize> {
    let bytes = text.as_bytes().get(from..)?;
    let blank = |byte: &&u8| byte.is_ascii_whitespace() || stray.contains(byte);
    let length = bytes.iter().take(MAX_BLANK + 1).take_while(blank).count();
    (length <= MAX_BLANK).then_some(from + length)
}

/// What stands behind a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// A closing mark, which ends here.
    Closed(usize),
    /// What could still become one.
    Open,
    /// Something else.
    None,
}

/// Looks for a closing mark after a body. White space and the `stray` bytes may stand before it.
pub(super) fn tail(text: &str, from: usize, closes: &[&str], stray: &[u8]) -> Tail {
    let Some(at) = ahead(text, from, stray) else { return Tail::None };
    let rest = cut(text, at..text.len());
    if let Some(close) = closes.iter().find(|close| rest.starts_with(**close)) {
        return Tail::Closed(at + close.len());
    }
    let open = closes.iter().any(|close| close.starts_with(rest)) || (rest.is_empty() && closes.is_empty());
    if open { Tail::Open } else { Tail::None }
}
