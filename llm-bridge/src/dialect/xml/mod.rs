//! The family of XML-like bodies: one tag names the tool, one tag for each argument holds its value as text.

mod value;

use memchr::memchr;

use super::{
    body::{Cx, Lead, Ready, Step, Tail, Unfinished, ahead, cut, tail},
    table::Dialect,
    typing::{Types, escape},
};

/// The tags of one dialect. An opening tag is written in two parts with the name between them.
#[derive(Debug, Clone, Copy)]
pub struct XmlStyle {
    /// Around the tool's name.
    pub call: (&'static str, &'static str),
    /// Ends the call.
    pub call_end: &'static str,
    /// Around the argument's name.
    pub param: (&'static str, &'static str),
    /// Ends the value.
    pub param_end: &'static str,
}

/// A longer name is not one.
const MAX_NAME: usize = 256;

/// Reads one body as it comes in. Positions are offsets into the text that is handed to [`XmlBody::feed`].
#[derive(Debug)]
pub(super) struct XmlBody {
    row: &'static Dialect,
    style: XmlStyle,
    wrapped: bool,
    pos: usize,
    part: Part,
    start: usize,
    name: Option<String>,
    types: Types,
    /// The arguments as far as they are known, as JSON text.
    arguments: String,
    params: usize,
    repaired: bool,
    /// Where text that is no argument begins, behind the last one.
    stray: Option<usize>,
    /// How much of the value, from `start` on, is already in `arguments`.
    taken: Option<usize>,
    sent: usize,
    begun: Option<usize>,
    ready: Vec<Ready>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before a call's tag.
    Call,
    /// In the tool's name.
    Name,
    /// Between the arguments.
    Between,
    /// In an argument's name.
    Key,
    /// In a value.
    Value,
    /// After the call's end.
    Tail,
}

/// What a piece of text is, compared with a mark.
#[derive(PartialEq, Eq)]
enum Is {
    Yes,
    No,
    Open,
}

fn is(text: &str, mark: &str) -> Is {
    if text.starts_with(mark) {
        Is::Yes
    } else if mark.starts_with(text) {
        Is::Open
    } else {
        Is::No
    }
}

/// Whether a body of this family could begin so.
pub(super) fn lead(style: &XmlStyle, text: &str) -> Lead {
    match is(text, style.call.0) {
        Is::Yes => Lead::Yes,
        Is::No => Lead::No,
        Is::Open => Lead::More,
    }
}

impl XmlBody {
    pub(super) fn new(row: &'static Dialect, style: XmlStyle, at: usize, wrapped: bool) -> Self {
        Self {
            row,
            style,
            wrapped,
            pos: at,
            part: Part::Call,
            start: at,
            name: None,
            types: Types::of(None, ""),
            arguments: String::new(),
            params: 0,
            repaired: false,
            stray: None,
            taken: None,
            sent: 0,
            begun: None,
            ready: Vec::new(),
        }
    }

    pub(super) fn take_ready(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.ready)
    }

    /// The call that has begun and is not complete.
    pub(super) fn unfinished(&mut self) -> Option<Unfinished> {
        self.name.take().map(|_| Unfinished { index: self.begun.take(), meant: self.params > 0 })
    }

    pub(super) fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        loop {
            let step = match self.part {
                Part::Call => self.call(text, eof),
                Part::Name => self.named(text, eof, cx),
                Part::Between => self.between(text, eof, cx),
                Part::Key => self.key(text, eof, cx),
                Part::Value => self.value(text, eof, cx),
                Part::Tail => self.after(text, eof),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn rest<'a>(&self, text: &'a str) -> &'a str {
        cut(text, self.pos..text.len())
    }

    fn skip_blank(&mut self, text: &str) {
        let rest = self.rest(text);
        self.pos += rest.len() - rest.trim_start().len();
    }

    fn call(&mut self, text: &str, eof: bool) -> Option<Step> {
        self.skip_blank(text);
        match is(self.rest(text), self.style.call.0) {
            Is::Yes => {
                self.pos += self.style.call.0.len();
                self.start = self.pos;
                self.part = Part::Name;
                None
            }
            Is::Open if !eof => Some(Step::More),
            _ => Some(Step::Reject(self.pos)),
        }
    }

    /// Goes on to the end of a name in a tag; the name, without white space and quotes around it.
    fn tag_name<'a>(&mut self, text: &'a str, end: &str, eof: bool) -> Result<&'a str, Step> {
        let rest = self.rest(text);
        let stop = rest.find(['<', '\n']).unwrap_or(rest.len());
        if let Some(at) = rest.find(end).filter(|at| *at < stop)
            && self.pos + at - self.start <= MAX_NAME
        {
            let name = cut(text, self.start..self.pos + at).trim();
            self.pos += at + end.len();
            return Ok(name);
        }
        if stop < rest.len() || self.pos + stop - self.start > MAX_NAME {
            return Err(Step::Reject(text.len().min(self.pos + stop).min(self.start + MAX_NAME)));
        }
        Err(if eof { Step::Reject(text.len()) } else { Step::More })
    }

    fn named(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let name = match self.tag_name(text, self.style.call.1, eof) {
            Ok(name) => name.trim_matches(['"', '\'']),
            Err(step) => return Some(step),
        };
        if name.is_empty() || name.contains(['{', '}', '/', '"']) {
            return Some(Step::Reject(self.pos));
        }
        self.name = Some(name.to_owned());
        self.arguments.clear();
        self.arguments.push('{');
        (self.params, self.sent, self.repaired, self.stray) = (0, 0, false, None);
        if cx.live {
            self.begun = Some(cx.begin(name, self.row.name));
        }
        self.part = Part::Between;
        None
    }

    fn between(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        self.skip_blank(text);
        let rest = self.rest(text);
        let param = is(rest, self.style.param.0);
        if param == Is::Yes {
            self.pos += self.style.param.0.len();
            self.start = self.pos;
            self.part = Part::Key;
            self.repaired |= self.stray.take().is_some();
            return None;
        }
        let end = is(rest, self.style.call_end);
        if end == Is::Yes {
            self.pos += self.style.call_end.len();
            self.repaired |= self.stray.take().is_some();
            self.finish_call(self.pos, cx);
            return None;
        }
        let tail = tail(text, self.pos, self.row.close, &[]);
        let next = self.opens(rest);
        let open = param == Is::Open || end == Is::Open || tail == Tail::Open || next == Is::Open;
        if open && !eof {
            return Some(Step::More);
        }
        if let Tail::Closed(close_end) = tail {
            // The wrapper is closed before the call: it is whole all the same.
            self.repaired = true;
            self.finish_call(self.pos, cx);
            self.pos = close_end;
            return Some(Step::Done(close_end));
        }
        // A call without any argument has to be ended, and nothing may stand in it: else a tag is just mentioned.
        if self.params == 0 {
            return Some(Step::Reject(if eof && open { text.len() } else { self.pos }));
        }
        if rest.is_empty() || next == Is::Yes || (eof && open) {
            // No end: what stands behind the last argument is text.
            self.pos = self.stray.take().unwrap_or(self.pos);
            self.repaired = true;
            self.finish_call(self.pos, cx);
            return Some(Step::Done(self.pos));
        }
        // Text between the arguments stays in the source if another tag of the call follows.
        self.stray.get_or_insert(self.pos);
        let skip = memchr(b'<', rest.as_bytes().get(1..).unwrap_or_default()).map_or(rest.len(), |at| at + 1);
        self.pos += skip;
        None
    }

    /// Whether another call opens here, by a mark of this dialect.
    fn opens(&self, rest: &str) -> Is {
        let marks = self.row.marks.iter().map(|mark| is(rest, mark.text));
        marks.fold(Is::No, |best, this| match (best, this) {
            (Is::Yes, _) | (_, Is::Yes) => Is::Yes,
            (Is::Open, _) | (_, Is::Open) => Is::Open,
            _ => Is::No,
        })
    }

    fn key(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let key = match self.tag_name(text, self.style.param.1, eof) {
            Ok(key) => key.trim_matches(['"', '\'']),
            Err(step) => return Some(step),
        };
        let schema = self.name.as_deref().and_then(|name| cx.offered.schema(name));
        self.types = Types::of(schema, key);
        if self.params > 0 {
            self.arguments.push_str(", ");
        }
        self.arguments.push('"');
        escape(key, &mut self.arguments);
        self.arguments.push_str("\": ");
        self.params += 1;
        self.start = self.pos;
        self.taken = None;
        self.part = Part::Value;
        None
    }

    fn finish_call(&mut self, end: usize, cx: &mut Cx<'_>) {
        self.arguments.push('}');
        self.part = Part::Tail;
        self.stream("", cx);
        let Some(name) = self.name.take() else { return };
        self.ready.push(Ready {
            name,
            arguments: std::mem::take(&mut self.arguments),
            repaired: self.repaired,
            end,
            index: self.begun.take(),
            bare_name: false,
        });
    }

    fn after(&mut self, text: &str, eof: bool) -> Option<Step> {
        let tail = tail(text, self.pos, self.row.close, &[]);
        if let Tail::Closed(end) = tail {
            return Some(Step::Done(end));
        }
        let next = match ahead(text, self.pos, &[]) {
            Some(at) if self.wrapped => is(cut(text, at..text.len()), self.style.call.0),
            _ => Is::No,
        };
        if next == Is::Yes {
            self.part = Part::Call;
            return None;
        }
        if (tail == Tail::Open || next == Is::Open) && !eof {
            return Some(Step::More);
        }
        Some(Step::Done(self.pos))
    }
}
