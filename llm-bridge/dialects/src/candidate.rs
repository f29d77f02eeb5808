//! What may be a call, from its mark on: the choice of the dialect and the form that own it.

use super::{
    body::{Body, Cx, Is, Lead, MAX_BLANK, Ready, Step, Unfinished, ahead, is, is_any, rest},
    fence::Fence,
    header::Header,
    json::JsonBody,
    named::{Head, NamedBody},
    table::{Dialect, Form, MarkKind},
};

/// A possible call, from its mark on.
#[derive(Debug)]
pub(super) struct Candidate {
    /// What is given back as text, without being looked at again, if this is no call.
    pub(super) lead: usize,
    opened: Vec<(&'static Dialect, MarkKind)>,
    /// The length of the mark.
    mark: usize,
    /// No mark stands before it: shape and name have to prove it.
    bare: bool,
    /// Nothing but white space was written before it.
    alone: bool,
    /// It stands directly behind an opening quote: as a call it is shown, not made.
    quoted: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Several dialects share the mark.
    Undecided,
    Owned(&'static str, Box<dyn Body>),
    Fence(Box<Fence>),
}

/// Where a body begins, and the name that a header has given it.
struct Start {
    at: usize,
    recipient: Option<String>,
}

impl Candidate {
    /// After a mark of this many bytes.
    pub(super) fn marked(opened: Vec<(&'static Dialect, MarkKind)>, mark: usize) -> Self {
        Self { lead: mark, opened, mark, bare: false, alone: false, quoted: false, state: State::Undecided }
    }

    /// The candidate where nothing has been written yet, since the answer or a message in it began.
    pub(super) fn at_edge(self, alone: bool) -> Self {
        Self { alone, ..self }
    }

    /// The candidate behind an opening quote.
    pub(super) fn quoted(self, quoted: bool) -> Self {
        Self { quoted, ..self }
    }

    /// Whether it is shown, not made.
    pub(super) fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// A body that begins without a mark.
    pub(super) fn bare(rows: impl Iterator<Item = &'static Dialect>, alone: bool) -> Self {
        let opened = rows.map(|row| (row, MarkKind::Call)).collect();
        Self { lead: 1, opened, mark: 0, bare: true, alone, quoted: false, state: State::Undecided }
    }

    /// A code fence whose body may be calls.
    pub(super) fn fence(fence: Fence) -> Self {
        Self { lead: fence.opener(), state: State::Fence(Box::new(fence)), ..Self::marked(Vec::new(), 0) }
    }

    pub(super) fn dialect(&self) -> &'static str {
        match &self.state {
            State::Undecided => "",
            State::Owned(dialect, _) => dialect,
            State::Fence(fence) => fence.dialect(),
        }
    }

    pub(super) fn is_fence(&self) -> bool {
        matches!(self.state, State::Fence(_))
    }

    /// It begins with the header of a message.
    pub(super) fn is_header(&self) -> bool {
        self.opened.iter().any(|(_, kind)| *kind == MarkKind::Header)
    }

    /// The backticks of the fence that this candidate turned out to be, or 0.
    pub(super) fn fence_ticks(&self) -> usize {
        if let State::Fence(fence) = &self.state { fence.ticks() } else { 0 }
    }

    /// What may end the calls behind the mark; nothing where the mark is merely mentioned. Where the text is cut off
    /// (`at_end`) any beginning of a call is one.
    pub(super) fn ends(&self, at_end: bool) -> Option<Vec<&'static str>> {
        let State::Owned(dialect, body) = &self.state else { return None };
        let meant = !self.bare && (at_end || body.is_meant());
        let (row, _) = self.opened.iter().find(|(row, _)| row.name == *dialect)?;
        let end = |form: &Form| if let Form::Named(style) = form { style.end } else { &[] };
        meant.then(|| row.close.iter().chain(row.forms.iter().flat_map(end)).copied().collect())
    }

    fn body(&self) -> Option<&dyn Body> {
        match &self.state {
            State::Undecided => None,
            State::Owned(_, body) => Some(body.as_ref()),
            State::Fence(fence) => Some(fence.as_ref()),
        }
    }

    fn body_mut(&mut self) -> Option<&mut dyn Body> {
        match &mut self.state {
            State::Undecided => None,
            State::Owned(_, body) => Some(body.as_mut()),
            State::Fence(fence) => Some(fence.as_mut()),
        }
    }

    /// Reads on; `text` begins where the candidate begins.
    pub(super) fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        if matches!(self.state, State::Undecided) {
            match self.decide(text, eof) {
                Ok(state) => self.state = state,
                Err(step) => return step,
            }
        }
        self.body_mut().map_or(Step::More, |body| body.feed(text, eof, cx))
    }

    /// Asks the dialects of the mark, in their order, whether the text behind it is theirs.
    fn decide(&mut self, text: &str, eof: bool) -> Result<State, Step> {
        let mut end = self.lead;
        for (row, kind) in self.opened.clone() {
            let start = match kind {
                MarkKind::Wrapper | MarkKind::Line | MarkKind::Section => self.behind_mark(row, text, eof),
                MarkKind::Call | MarkKind::Inner => Ok(Start { at: 0, recipient: None }),
                MarkKind::Header => self.behind_header(row, text, eof),
            };
            let start = match start {
                Ok(start) => start,
                Err(Step::More) if eof => return Err(Step::Reject(text.len())),
                Err(Step::Reject(at)) => {
                    end = end.max(at);
                    continue;
                }
                Err(step) => return Err(step),
            };
            end = end.max(start.at);
            if kind == MarkKind::Header {
                // What is no call behind it is not the beginning of another message either.
                self.lead = start.at;
            }
            for form in row.forms {
                match self.lead_of(form, row, rest(text, start.at), start.recipient.is_some()) {
                    Lead::Yes => return Ok(self.own(row, form, kind, start)),
                    Lead::More if eof => end = text.len(),
                    Lead::More => return Err(Step::More),
                    Lead::No => {}
                }
            }
        }
        Err(Step::Reject(end.min(text.len())))
    }

    fn lead_of(&self, form: &Form, row: &Dialect, text: &str, addressed: bool) -> Lead {
        match form {
            Form::Json(_) => super::json::lead(text),
            Form::Named(style) => super::named::lead(style, row, text, addressed),
        }
    }

    fn own(&self, row: &'static Dialect, form: &Form, kind: MarkKind, start: Start) -> State {
        let body: Box<dyn Body> = match *form {
            Form::Json(style) => Box::new(JsonBody::new(row, style, start.at, self.bare, self.alone)),
            Form::Named(style) => {
                let name = start.recipient.filter(|_| matches!(style.head, Head::Recipient));
                let wrapped = !matches!(kind, MarkKind::Call | MarkKind::Inner);
                Box::new(NamedBody::new(
                    row,
                    style,
                    start.at,
                    wrapped,
                    self.bare || kind == MarkKind::Line,
                    name,
                ))
            }
        };
        State::Owned(row.name, body)
    }

    /// Behind the mark and those that repeat it, white space, and the first line of a fence that some models put
    /// inside their marks; the fence's end is noise before the closing mark.
    fn behind_mark(&self, row: &Dialect, text: &str, eof: bool) -> Result<Start, Step> {
        let mut at = self.mark;
        loop {
            at = ahead(text, at, &[]).ok_or(Step::Reject(at + MAX_BLANK))?;
            let inside = rest(text, at);
            let wrappers =
                row.marks.iter().filter(|mark| mark.kind == MarkKind::Wrapper).map(|mark| mark.text);
            match is_any(inside, wrappers.clone()) {
                Is::Yes if at < MAX_BLANK => {
                    at += wrappers.filter(|mark| inside.starts_with(mark)).map(str::len).max().unwrap_or(0);
                }
                Is::Open if !eof && !inside.is_empty() => return Err(Step::More),
                _ => break,
            }
        }
        let inside = rest(text, at);
        if is(inside, "```") == Is::Open && !inside.is_empty() {
            return Err(Step::More);
        }
        if !inside.starts_with("```") {
            return Ok(Start { at, recipient: None });
        }
        let line = super::body::cut(inside, 0..inside.floor_char_boundary(MAX_BLANK));
        match line.find('\n').map(|end| ahead(text, at + end, &[])) {
            Some(Some(at)) => Ok(Start { at, recipient: None }),
            None if line.len() == inside.len() => Err(Step::More),
            _ => Err(Step::Reject(at)),
        }
    }

    /// Behind a header that addresses a tool, and the mark that may open its calls.
    fn behind_header(&self, row: &Dialect, text: &str, eof: bool) -> Result<Start, Step> {
        let Some(style) = row.header else { return Err(Step::Reject(self.mark)) };
        match style.read(text, self.mark) {
            // What of a header was written when the answer was cut off is nothing to the reader.
            Header::More if eof && self.alone && !self.quoted => {
                Err(Step::Message { end: text.len(), thinking: false })
            }
            Header::More => Err(Step::More),
            Header::No(at) => Err(Step::Reject(at)),
            Header::Message { end, .. } if self.quoted => Err(Step::Reject(end)),
            Header::Message { end, thinking } => Err(Step::Message { end, thinking }),
            Header::Call { end, recipient } => {
                let Some(at) = ahead(text, end, &[]) else { return Err(Step::Reject(end)) };
                let sections = row.marks.iter().filter(|mark| mark.kind == MarkKind::Section);
                let sections = sections.map(|mark| mark.text);
                match is_any(rest(text, at), sections.clone()) {
                    Is::Open if !eof && at < text.len() => Err(Step::More),
                    Is::Yes => {
                        let inside = rest(text, at);
                        let mark = sections.filter(|mark| inside.starts_with(mark)).map(str::len).max();
                        let behind = at + mark.unwrap_or(0);
                        Ok(Start {
                            at: ahead(text, behind, &[]).unwrap_or(behind),
                            recipient: Some(recipient),
                        })
                    }
                    _ => Ok(Start { at, recipient: Some(recipient) }),
                }
            }
        }
    }

    /// The calls read so far, in their order.
    pub(super) fn take_ready(&mut self) -> Vec<Ready> {
        self.body_mut().map(Body::take_ready).unwrap_or_default()
    }

    /// The call that had begun when the body was given up.
    pub(super) fn unfinished(&mut self) -> Option<Unfinished> {
        self.body_mut()?.unfinished()
    }

    /// Where the JSON array begins that is none of calls, so that nothing in it is one.
    pub(super) fn list(&self) -> Option<usize> {
        self.body()?.foreign()
    }

    /// Whether the calls read so far stand though what followed them could not be read.
    pub(super) fn keeps_ready(&self) -> bool {
        self.body().is_some_and(Body::keeps_ready)
    }
}
