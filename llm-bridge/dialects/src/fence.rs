//! Code fences: most show code, some models put their calls into one.

use super::{
    body::{Body, Cx, Is, Ready, Step, Unfinished, cut, is},
    candidate::Candidate,
    delimiters::{Delimiters, Found},
    offered::Offered,
    table::{DelimiterKind, Dialect, Form},
};

/// Info strings of fences that can hold calls, as they can hold anything else.
const INFO: &[&str] = &["", "json", "xml"];
/// Info strings that say so.
const CALLS: &[&str] =
    &["tool_call", "tool_calls", "tool_code", "tool_use", "tool", "function_call", "function_calls"];
/// Only so far is looked for what keeps the result of a call.
const MAX_KEPT: usize = 128;
/// A longer first line is no fence that can hold calls.
const MAX_INFO: usize = 40;

/// A fence whose whole body may be calls.
#[derive(Debug)]
pub(super) struct Fence {
    opener: usize,
    ticks: usize,
    /// Calls with a delimiter count as well; they do where the fence is the whole answer.
    marked: bool,
    /// Its first line says that it holds calls: then these need not be JSON.
    named: bool,
    dialect: &'static str,
    pos: usize,
    inner: Option<Box<Candidate>>,
    ready: Vec<Ready>,
    only: Option<&'static str>,
}

/// What a line that begins with backticks is.
pub(super) enum Opening {
    /// No fence.
    None,
    /// More text is needed to tell.
    More,
    /// A fence of so many backticks, which shows code; the length of its first line is not known yet.
    Shows(usize),
    /// A fence that may hold calls, the length of its first line, and whether that says so.
    Holds(usize, usize, bool),
}

/// What begins at a place in a fence.
enum Next {
    /// A possible call, after so many bytes.
    Call(Box<Candidate>, usize),
    /// More text is needed to tell.
    More,
    /// No call.
    Other,
}

/// Reads the first line of a fence, which is made of this byte.
pub(super) fn opening(text: &str, delimiter: u8, eof: bool) -> Opening {
    let ticks = text.bytes().take(MAX_INFO).take_while(|byte| *byte == delimiter).count();
    if ticks == text.len() && !eof {
        return Opening::More;
    }
    if ticks < 3 || ticks == MAX_INFO {
        return Opening::None;
    }
    // Only so much of the line counts as is looked at however the text comes in.
    let line = cut(text, ticks..text.floor_char_boundary(ticks + MAX_INFO));
    let info = line.split_once('\n').map(|(info, _)| info);
    let is_one = |info: &str, of: &[&str]| of.iter().any(|known| info.trim().eq_ignore_ascii_case(known));
    let named = info.is_some_and(|info| is_one(info, CALLS));
    match (info, named || info.is_some_and(|info| is_one(info, INFO))) {
        _ if delimiter == b'`' && info.unwrap_or(line).contains('`') => Opening::None,
        (Some(info), true) if delimiter == b'`' => Opening::Holds(ticks, ticks + info.len() + 1, named),
        (None, _) if text.len() < ticks + MAX_INFO && !eof => Opening::More,
        _ => Opening::Shows(ticks),
    }
}

impl Fence {
    pub(super) fn new(
        (ticks, opener, named): (usize, usize, bool),
        marked: bool,
        only: Option<&'static str>,
    ) -> Self {
        Self { opener, ticks, marked, named, dialect: "", pos: opener, inner: None, ready: Vec::new(), only }
    }

    pub(super) fn opener(&self) -> usize {
        self.opener
    }

    pub(super) fn ticks(&self) -> usize {
        self.ticks
    }

    pub(super) fn dialect(&self) -> &'static str {
        self.dialect
    }

    fn next(&self, rest: &str, eof: bool, offered: &Offered) -> Next {
        let delimiters = Delimiters::get();
        let wanted = |row: &Dialect| self.only.is_none_or(|only| only == row.name);
        let found = if self.marked { delimiters.at(rest) } else { Found::Nothing };
        if rest.starts_with(['{', '[']) && matches!(found, Found::Nothing) {
            let json = |row: &Dialect| matches!(row.forms, [Form::Json(_), ..]);
            let fits = |row: &&Dialect| (self.named || json(row)) && wanted(row);
            let rows = delimiters.bare().iter().copied().filter(fits);
            return Next::Call(Box::new(Candidate::bare(rows, false)), 0);
        }
        let words = delimiters.words().iter().filter(|(_, row)| self.marked && wanted(row));
        for (word, row) in words {
            match is(rest, word) {
                Is::Yes => {
                    let inner = Candidate::marked(vec![(row, DelimiterKind::Line)], word.len());
                    return Next::Call(Box::new(inner), 0);
                }
                Is::Open if !eof => return Next::More,
                _ => {}
            }
        }
        match found {
            Found::Delimiter(delimiter, len) => {
                let rows = delimiter.rows(self.only, false);
                let inner = Candidate::marked(rows, delimiter.text.len()).after(cut(rest, 0..len));
                if inner.is_empty() {
                    Next::Other
                } else {
                    Next::Call(Box::new(inner.shared(self.only.is_none())), 0)
                }
            }
            Found::Partial if !eof => Next::More,
            Found::Partial | Found::Nothing if !self.named => Next::Other,
            Found::Partial | Found::Nothing => match statement(rest, eof, offered) {
                Ok(Some(at)) => {
                    let rows = delimiters.bare().iter().copied().filter(|row| wanted(row));
                    let rows = rows.map(|row| (row, DelimiterKind::Call)).collect();
                    Next::Call(Box::new(Candidate::marked(rows, 0)), at)
                }
                Ok(None) => Next::Other,
                Err(()) => Next::More,
            },
        }
    }
}

/// Where the call of an offered tool begins in a statement, which may keep or print its result; an error while more
/// text decides.
fn statement(text: &str, eof: bool, offered: &Offered) -> Result<Option<usize>, ()> {
    let area = cut(text, 0..text.floor_char_boundary(MAX_KEPT));
    let word = area.find(|char: char| !(char.is_alphanumeric() || char == '_')).unwrap_or(area.len());
    let behind = cut(area, word..area.len()).trim_start_matches(' ');
    if behind.is_empty() && area.len() == text.len() && !eof {
        return Err(());
    }
    let kept = behind.strip_prefix('=').filter(|value| word > 0 && !value.starts_with('='));
    let kept = kept.map_or(0, |value| area.len() - value.trim_start_matches(' ').len());
    let call = cut(text, kept..text.len());
    let printed = call.strip_prefix("print(");
    for called in [Some(call), printed].into_iter().flatten() {
        if offered.calls(called, eof)? {
            return Ok(Some(text.len() - call.len()));
        }
    }
    Ok(None)
}

impl Body for Fence {
    fn take_ready(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.ready)
    }

    fn unfinished(&mut self) -> Option<Unfinished> {
        None
    }

    fn is_meant(&self) -> bool {
        false
    }

    fn keeps_ready(&self) -> bool {
        false
    }

    fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        loop {
            let rest = cut(text, self.pos..text.len());
            if let Some(inner) = &mut self.inner {
                match inner.feed(rest, eof, cx) {
                    Step::More => return Step::More,
                    Step::Reject(at) => return Step::Reject(self.pos + at),
                    Step::Message { .. } => return Step::Reject(self.pos),
                    Step::Done(end) => {
                        self.dialect = inner.dialect();
                        let base = self.pos;
                        self.ready.extend(inner.take_ready().into_iter().map(|mut ready| {
                            ready.end += base;
                            ready
                        }));
                        self.pos += end;
                        self.inner = None;
                        continue;
                    }
                }
            }
            let blank = rest.len() - rest.trim_start().len();
            let rest = cut(rest, blank..rest.len());
            let at = self.pos + blank;
            self.pos = at;
            let ticks = rest.bytes().take(MAX_INFO).take_while(|byte| *byte == b'`').count();
            if ticks == rest.len() && !(ticks >= self.ticks && eof) {
                // Also the missing end of a fence is only known at the end of the text.
                return match (eof, self.ready.last()) {
                    (false, _) => Step::More,
                    (true, Some(last)) if ticks == 0 => Step::Done(last.end),
                    (true, _) => Step::Reject(text.len()),
                };
            }
            if ticks > 0 {
                let closed = ticks >= self.ticks && !self.ready.is_empty();
                return if closed { Step::Done(at + ticks) } else { Step::Reject(at) };
            }
            match self.next(rest, eof, cx.offered) {
                Next::Call(inner, skipped) => {
                    self.inner = Some(inner);
                    self.pos += skipped;
                }
                Next::More => return Step::More,
                Next::Other => return Step::Reject(at),
            }
        }
    }
}
