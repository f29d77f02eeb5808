//! What may be a call, from its delimiter on: the choice of the dialect and the form that own it.

mod end;
#[cfg(test)]
mod tests;

use super::{
    body::{Body, Cx, Is, Lead, MAX_BLANK, Ready, Step, Unfinished, ahead, cut, is, is_any, rest},
    delimiters::{Delimiters, Found},
    fence::Fence,
    header::Header,
    json::{JsonBody, JsonStyle},
    named::{Head, NamedBody},
    offered::Offered,
    rows::{IN_ELEMENTS, LIST},
    suffix::Unsuffixed,
    table::{DelimiterKind, Dialect, Form},
};

/// A possible call, from its delimiter on.
#[derive(Debug)]
pub(super) struct Candidate {
    lead: usize,
    opened: Vec<(&'static Dialect, DelimiterKind)>,
    /// The length of the delimiter.
    delimiter: usize,
    /// No delimiter stands before it: shape and name have to prove it.
    bare: bool,
    /// Nothing but white space was written before it.
    alone: bool,
    /// It stands directly after an opening quote: as a call it is shown, not made.
    quoted: bool,
    /// A wrapper may hold the calls of any row.
    shared: bool,
    /// Its tags carry a suffix, without which it is read.
    unsuffixed: Option<Box<Unsuffixed>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Several dialects share the delimiter.
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
    /// After a delimiter of this many bytes.
    pub(super) fn marked(opened: Vec<(&'static Dialect, DelimiterKind)>, delimiter: usize) -> Self {
        Self {
            lead: delimiter,
            opened,
            delimiter,
            bare: false,
            alone: false,
            quoted: false,
            shared: false,
            unsuffixed: None,
            state: State::Undecided,
        }
    }

    /// The candidate whose delimiter is a wrapper in which other rows' calls may stand too.
    pub(super) fn shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    /// The candidate after this delimiter, which may carry a suffix.
    pub(super) fn after(self, delimiter: &str) -> Self {
        let suffixed = delimiter.len() > self.delimiter;
        Self { unsuffixed: suffixed.then(|| Box::new(Unsuffixed::new(delimiter))), ..self }
    }

    /// What is given back as text, without being looked at again, if this is no call.
    pub(super) fn lead(&self) -> usize {
        self.original(self.lead)
    }

    /// The place in the text where the body sees this one.
    fn original(&self, at: usize) -> usize {
        self.unsuffixed.as_ref().map_or(at, |tags| tags.original(at))
    }

    /// The candidate whose delimiter proves nothing: the shape and the name have to.
    pub(super) fn unproven(self, bare: bool) -> Self {
        Self { bare, ..self }
    }

    /// The candidate where nothing has been written yet, since the answer or a message in it began.
    pub(super) fn at_edge(self, alone: bool) -> Self {
        Self { alone, ..self }
    }

    /// The candidate after an opening quote.
    pub(super) fn quoted(self, quoted: bool) -> Self {
        Self { quoted, ..self }
    }

    /// Whether it is shown, not made.
    pub(super) fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// A body that begins without a delimiter.
    pub(super) fn bare(rows: impl Iterator<Item = &'static Dialect>, alone: bool) -> Self {
        let opened = rows.map(|row| (row, DelimiterKind::Call)).collect();
        Self { lead: 1, bare: true, alone, ..Self::marked(opened, 0) }
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

    /// No dialect has its delimiter.
    pub(super) fn is_empty(&self) -> bool {
        self.opened.is_empty()
    }

    /// Nothing but a delimiter before calls has been read.
    pub(super) fn is_wrapper(&self) -> bool {
        let wraps = self.opened.iter().any(|(_, kind)| *kind == DelimiterKind::Wrapper);
        wraps && matches!(self.state, State::Undecided)
    }

    /// It begins with the header of a message.
    pub(super) fn is_header(&self) -> bool {
        self.opened.iter().any(|(_, kind)| *kind == DelimiterKind::Header)
    }

    /// The backticks of the fence that this candidate turned out to be, or 0.
    pub(super) fn fence_ticks(&self) -> usize {
        if let State::Fence(fence) = &self.state { fence.ticks() } else { 0 }
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
        let Some(mut tags) = self.unsuffixed.take() else { return self.read(text, eof, cx) };
        let step = loop {
            // What is behind the body's end is not copied: other candidates may begin there, and copy it too.
            let part = tags.part(text);
            let whole = part.len() == text.len();
            let step = self.read(tags.feed(part, eof && whole), eof && whole, cx);
            if whole || step != Step::More {
                break step;
            }
        };
        let step = match step {
            Step::More => Step::More,
            Step::Done(end) => Step::Done(tags.original(end)),
            Step::Reject(at) => Step::Reject(tags.original(at)),
            Step::Message { end, thinking, foreign } => {
                Step::Message { end: tags.original(end), thinking, foreign }
            }
        };
        self.unsuffixed = Some(tags);
        step
    }

    fn read(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        if matches!(self.state, State::Undecided) {
            match self.decide(text, eof, cx.offered) {
                Ok(state) => self.state = state,
                Err(step) => return step,
            }
        }
        self.body_mut().map_or(Step::More, |body| body.feed(text, eof, cx))
    }

    /// Asks the dialects of the delimiter, in their order, whether the text after it is theirs.
    fn decide(&mut self, text: &str, eof: bool, offered: &Offered) -> Result<State, Step> {
        if let Some(decided) = self.decide_python(text, eof, offered) {
            return decided;
        }
        let mut end = self.lead;
        for (row, kind) in self.opened.clone() {
            let start = match kind {
                DelimiterKind::Wrapper
                | DelimiterKind::Line
                | DelimiterKind::Section
                | DelimiterKind::Word => self.after_delimiter(row, text, eof),
                DelimiterKind::Call | DelimiterKind::Inner | DelimiterKind::Name => {
                    Ok(Start { at: 0, recipient: None })
                }
                DelimiterKind::Header => self.after_header(row, text, eof, offered),
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
            if kind == DelimiterKind::Header {
                // What is no call after it is not the beginning of another message either.
                self.lead = start.at;
            }
            for form in row.forms {
                match self.lead_of(form, row, rest(text, start.at), start.recipient.is_some()) {
                    Lead::Yes => return Ok(self.own(row, form, kind, start)),
                    // A call without arguments, whose end a server has taken out as a special token.
                    Lead::More if eof && start.recipient.is_some() && start.at == text.len() => {
                        return Ok(self.own(row, form, kind, start));
                    }
                    Lead::More if eof => end = text.len(),
                    Lead::More => return Err(Step::More),
                    Lead::No => {}
                }
            }
        }
        self.decide_shared(text, eof).unwrap_or_else(|| Err(Step::Reject(end.min(text.len()))))
    }

    /// After a wrapper a call of an offered tool in Python, whatever the wrapper is for.
    fn decide_python(&self, text: &str, eof: bool, offered: &Offered) -> Option<Result<State, Step>> {
        let wrapper = |(_, kind): &&(&'static Dialect, DelimiterKind)| *kind == DelimiterKind::Wrapper;
        let (row, _) = *self.opened.iter().find(wrapper).filter(|_| offered.is_named())?;
        let at = ahead(text, self.delimiter, &[])?;
        let inside = rest(text, at);
        let listed =
            inside.strip_prefix('[').map_or(inside, |list| rest(list, ahead(list, 0, &[]).unwrap_or(0)));
        match offered.calls(listed, eof) {
            Ok(true) => Some(Ok(self.own(row, &LIST, DelimiterKind::Wrapper, Start { at, recipient: None }))),
            Ok(false) => None,
            Err(()) => Some(Err(Step::More)),
        }
    }

    /// After a wrapper in which none of its own calls stands: that of another row, or JSON.
    fn decide_shared(&mut self, text: &str, eof: bool) -> Option<Result<State, Step>> {
        let wrapper = |(_, kind): &&(&'static Dialect, DelimiterKind)| *kind == DelimiterKind::Wrapper;
        let (row, _) = *self.opened.iter().find(wrapper).filter(|_| self.shared)?;
        let at = ahead(text, self.delimiter, &[])?;
        let inside = rest(text, at);
        match super::json::lead(inside) {
            Lead::Yes => {
                let form = Form::Json(JsonStyle::PLAIN);
                let start = Start { at, recipient: None };
                return Some(Ok(self.own(row, &form, DelimiterKind::Wrapper, start)));
            }
            Lead::More if !eof => return Some(Err(Step::More)),
            Lead::More | Lead::No => {}
        }
        for form in IN_ELEMENTS {
            match self.lead_of(form, row, inside, false) {
                Lead::Yes => {
                    let start = Start { at, recipient: None };
                    return Some(Ok(self.own(row, form, DelimiterKind::Wrapper, start)));
                }
                Lead::More if !eof => return Some(Err(Step::More)),
                Lead::More | Lead::No => {}
            }
        }
        let (delimiter, length) = match Delimiters::get().at(inside) {
            Found::Delimiter(delimiter, length) => (delimiter, length),
            Found::Partial if !eof => return Some(Err(Step::More)),
            Found::Partial | Found::Nothing => return None,
        };
        for (row, kind) in delimiter.rows(None, false) {
            let start = match kind {
                DelimiterKind::Wrapper => ahead(text, at + length, &[])?,
                DelimiterKind::Call | DelimiterKind::Inner => at,
                _ => continue,
            };
            for form in row.forms {
                match self.lead_of(form, row, rest(text, start), false) {
                    Lead::Yes => {
                        self.opened.push((row, kind));
                        return Some(Ok(self.own(row, form, kind, Start { at: start, recipient: None })));
                    }
                    Lead::More if !eof => return Some(Err(Step::More)),
                    Lead::More | Lead::No => {}
                }
            }
        }
        None
    }

    fn lead_of(&self, form: &Form, row: &Dialect, text: &str, addressed: bool) -> Lead {
        match form {
            Form::Json(_) => super::json::lead(text),
            Form::Named(style) => super::named::lead(style, row, text, addressed),
        }
    }

    fn own(&self, row: &'static Dialect, form: &Form, kind: DelimiterKind, start: Start) -> State {
        let body: Box<dyn Body> = match *form {
            Form::Json(style) => {
                let body = JsonBody::new(row, style, start.at, self.bare, self.alone);
                Box::new(body.after_word(matches!(kind, DelimiterKind::Line | DelimiterKind::Word)))
            }
            Form::Named(style) => {
                let name = start.recipient.filter(|_| matches!(style.head, Head::Recipient));
                Box::new(NamedBody::new(row, style, start.at, kind, self.bare, name))
            }
        };
        State::Owned(row.name, body)
    }

    /// After the delimiter and those that repeat it, white space, and the first line of a fence that some models put
    /// inside their delimiters; the fence's end is noise before the closing delimiter.
    fn after_delimiter(&self, row: &Dialect, text: &str, eof: bool) -> Result<Start, Step> {
        let mut at = self.delimiter;
        loop {
            at = ahead(text, at, &[]).ok_or(Step::Reject(at + MAX_BLANK))?;
            let inside = rest(text, at);
            let wrappers = row
                .delimiters
                .iter()
                .filter(|delimiter| delimiter.kind == DelimiterKind::Wrapper)
                .map(|delimiter| delimiter.text);
            match is_any(inside, wrappers.clone()) {
                Is::Yes if at < MAX_BLANK => {
                    at += wrappers
                        .filter(|delimiter| inside.starts_with(delimiter))
                        .map(str::len)
                        .max()
                        .unwrap_or(0);
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
        let line = cut(inside, 0..inside.floor_char_boundary(MAX_BLANK));
        match line.find('\n').map(|end| ahead(text, at + end, &[])) {
            Some(Some(at)) => Ok(Start { at, recipient: None }),
            None if line.len() == inside.len() => Err(Step::More),
            _ => Err(Step::Reject(at)),
        }
    }

    /// After a header that addresses a tool, and the delimiter that may open its calls.
    fn after_header(&self, row: &Dialect, text: &str, eof: bool, offered: &Offered) -> Result<Start, Step> {
        let Some(style) = row.header else { return Err(Step::Reject(self.delimiter)) };
        match style.read(text, self.delimiter) {
            // What of a header was written when the answer was cut off is nothing to the reader.
            Header::More if eof && self.alone && !self.quoted => {
                Err(Step::Message { end: text.len(), thinking: false, foreign: false })
            }
            Header::More => Err(Step::More),
            Header::No(at) if self.alone && !self.quoted => {
                Err(match style.broken_off(text, self.delimiter, eof) {
                    Ok(Some(end)) => Step::Message { end, thinking: false, foreign: false },
                    Ok(None) => Step::Reject(at),
                    Err(()) => Step::More,
                })
            }
            Header::No(at) => Err(Step::Reject(at)),
            Header::Message { end, .. } if self.quoted => Err(Step::Reject(end)),
            Header::Message { end, thinking, foreign } => Err(Step::Message { end, thinking, foreign }),
            Header::Call { end, recipient } => {
                let stripped = !cut(text, 0..end).contains('<');
                let found =
                    if stripped { style.stripped_recipient(&recipient, offered) } else { Some(recipient) };
                let Some(recipient) = found else { return Err(Step::Reject(end)) };
                let Some(at) = ahead(text, end, &[]) else { return Err(Step::Reject(end)) };
                let sections =
                    row.delimiters.iter().filter(|delimiter| delimiter.kind == DelimiterKind::Section);
                let sections = sections.map(|delimiter| delimiter.text);
                match is_any(rest(text, at), sections.clone()) {
                    Is::Open if !eof && at < text.len() => Err(Step::More),
                    Is::Yes => {
                        let inside = rest(text, at);
                        let delimiter =
                            sections.filter(|delimiter| inside.starts_with(delimiter)).map(str::len).max();
                        let behind = at + delimiter.unwrap_or(0);
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
        let mut ready = self.body_mut().map(Body::take_ready).unwrap_or_default();
        for call in &mut ready {
            call.end = self.original(call.end);
        }
        ready
    }

    /// The call that had begun when the body was given up.
    pub(super) fn unfinished(&mut self) -> Option<Unfinished> {
        self.body_mut()?.unfinished()
    }

    /// Where the JSON array begins that is none of calls, so that nothing in it is one.
    pub(super) fn list(&self) -> Option<usize> {
        self.body()?.foreign().map(|at| self.original(at))
    }

    /// Whether the calls read so far stand though what followed them could not be read.
    pub(super) fn keeps_ready(&self) -> bool {
        self.body().is_some_and(Body::keeps_ready)
    }
}
