//! What ends a call, and what may stand after it: another one, or the closing delimiter.

use super::{Arguments, NamedBody, NamedStyle, Part, lead, lead_is};
use crate::{
    body::{Cx, Is, Lead, Ready, Step, Tail, ahead, cut, done_on_line, is, is_any, rest, tail},
    envelope::{members, wrapped_arguments},
};

/// What may stand between JSON and the end of its call without a meaning: of a fence around it, or one bracket too many.
const STRAYS: &[u8] = b"`>)}";

/// What may stand between calls.
const SEPARATORS: &[u8] = b",;";

/// Whether a bracket is among what stands there without a meaning.
fn holds_bracket(strays: &str) -> bool {
    strays.contains(['}', ')', '>'])
}

impl NamedBody {
    /// Passes over the delimiters that end the call; the arguments before them are whole.
    pub(super) fn end(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let strays: &[u8] =
            if matches!(self.style.arguments, Arguments::Json) || self.closed { STRAYS } else { b"" };
        let object = self.around_object().filter(|_| self.closed).map(|(_, close)| *close);
        let ends = || self.style.end.iter().copied().chain(object).chain(self.printed.then_some(")"));
        let mut open = false;
        for stray in [&[], strays] {
            let next = ahead(text, self.pos, stray).unwrap_or(self.pos);
            let behind = rest(text, next);
            if let Some(end) = ends().find(|end| behind.starts_with(end)) {
                self.ended = true;
                self.repaired |= holds_bracket(cut(text, self.pos..next));
                self.pos = next + end.len();
                return None;
            }
            open |= is_any(behind, ends()) == Is::Open;
        }
        let own = if self.closed { self.own_end(text, eof) } else { Is::No };
        if own == Is::Yes {
            return None;
        }
        if (open || own == Is::Open) && !eof {
            return Some(Step::More);
        }
        if self.needs_end() {
            return Some(Step::Reject(self.pos));
        }
        self.finish_call(text, self.pos, cx);
        None
    }

    pub(super) fn finish_call(&mut self, text: &str, end: usize, cx: &mut Cx<'_>) {
        self.settle_value(text, cx);
        if !self.closed {
            if self.arguments.is_empty() {
                self.arguments.push('{');
            }
            self.arguments.push('}');
        }
        if self.wraps && self.params == 1 {
            self.unwrap_arguments(cx);
        }
        self.wraps = false;
        self.part = Part::Tail;
        self.send(cx);
        let Some(name) = self.name.take() else { return };
        self.ready.push(Ready {
            name,
            arguments: std::mem::take(&mut self.arguments),
            repaired: self.repaired,
            end,
            index: self.begun.take(),
            bare_name: false,
            closed: self.ended || self.closed && self.style.end.is_empty() && self.row.is_open_ended(),
        });
    }

    /// Takes the only argument for all of them, if it is an object whose members are arguments of the tool.
    fn unwrap_arguments(&mut self, cx: &Cx<'_>) {
        let inner = wrapped_arguments(&self.arguments);
        let known = |name: &str| self.properties(cx).is_some_and(|all| all.contains_key(name));
        if let Some(inner) =
            inner.filter(|inner| members(inner).is_some_and(|names| names.iter().all(|name| known(name))))
        {
            self.arguments = inner;
            self.repaired = true;
        }
    }

    pub(super) fn after(&mut self, text: &str, eof: bool) -> Option<Step> {
        if self.listed {
            return self.after_element(text, eof);
        }
        let json = matches!(self.style.arguments, Arguments::Json);
        let strays: &[u8] = if json { STRAYS } else { b"`" };
        let tail = tail(text, self.pos, self.row.close, strays, eof);
        if let Tail::Closed(end) = tail {
            let close = ahead(text, self.pos, strays).unwrap_or(self.pos);
            let mended = holds_bracket(cut(text, self.pos..close));
            self.ready
                .iter_mut()
                .for_each(|ready| (ready.closed, ready.repaired) = (true, ready.repaired | mended));
            return Some(Step::Done(end));
        }
        match tail {
            Tail::Cut(end) => return Some(Step::Done(end)),
            // Where the name of a tool is a tag, the closing delimiter begins as another call does.
            Tail::Open if !eof => return Some(Step::More),
            _ => {}
        }
        let open = self.style.head.open();
        let next = match ahead(text, self.pos, SEPARATORS) {
            // Behind a comma stands the next one, if there is one.
            Some(at) if self.wrapped && at == text.len() && !self.bare => {
                if cut(text, self.pos..at).contains([',', ';']) { Lead::More } else { Lead::No }
            }
            Some(at) if self.wrapped && at < text.len() && !self.bare => {
                match (open, &self.style.arguments) {
                    ("", Arguments::Literals(_)) => lead(&self.style, self.row, rest(text, at), false),
                    ("", _) => Lead::No,
                    _ => lead_is(is(rest(text, at), open)),
                }
            }
            _ => Lead::No,
        };
        if next == Lead::Yes {
            self.pos = ahead(text, self.pos, SEPARATORS).unwrap_or(self.pos);
            self.part = Part::Call;
            return None;
        }
        if next == Lead::More && !eof {
            return Some(Step::More);
        }
        Some(if self.unmarked { done_on_line(text, self.pos, eof) } else { Step::Done(self.pos) })
    }

    /// Whether another element of the list begins here, behind white space.
    fn begins_element(&self, text: &str, at: usize) -> Lead {
        let style = NamedStyle { list: false, ..self.style };
        if at > self.pos { lead(&style, self.row, rest(text, at), false) } else { Lead::No }
    }

    /// After an element of a list: its next one or its end.
    fn after_element(&mut self, text: &str, eof: bool) -> Option<Step> {
        let Some(at) = ahead(text, self.pos, &[]) else { return Some(Step::Reject(self.pos)) };
        match text.as_bytes().get(at) {
            Some(b';') if !self.bare => {
                self.repaired = true;
                self.pos = at + 1;
                self.part = Part::Call;
                None
            }
            Some(b',') => {
                let next = ahead(text, at + 1, &[]).unwrap_or(at + 1);
                match text.as_bytes().get(next) {
                    None if !eof => return Some(Step::More),
                    // One comma too many.
                    Some(b']') => {
                        self.ready.iter_mut().for_each(|ready| ready.repaired = true);
                        self.pos = next;
                    }
                    _ => {
                        self.pos = at + 1;
                        self.part = Part::Call;
                    }
                }
                None
            }
            Some(b']') => {
                self.pos = at + 1;
                self.listed = false;
                self.wrapped = false;
                None
            }
            None if !eof => Some(Step::More),
            _ if !self.bare && self.begins_element(text, at) == Lead::Yes => {
                // The comma is missing.
                self.repaired = true;
                self.pos = at;
                self.part = Part::Call;
                None
            }
            _ if !self.bare && self.begins_element(text, at) == Lead::More && !eof => Some(Step::More),
            _ => match tail(text, self.pos, self.row.close, &[], eof) {
                _ if self.bare => Some(Step::Reject(self.pos)),
                Tail::Open if !eof => Some(Step::More),
                Tail::Closed(end) | Tail::Cut(end) => {
                    self.ready.iter_mut().for_each(|ready| ready.repaired = true);
                    Some(Step::Done(end))
                }
                _ => Some(Step::Reject(at.min(text.len()))),
            },
        }
    }
}
