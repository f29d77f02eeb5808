//! The arguments after a name: which notation they are in, and reading those that are no tags.

use super::{Arguments, NamedBody, Part, head, head::MAX_NAME};
use crate::{
    body::{Body, Cx, Is, Ready, Step, ahead, cut, is, is_any, rest},
    envelope::{Envelope, all_in_one, envelope, fits, members, misplaced},
    json::{JsonBody, JsonStyle},
    literal::{Literals, Read},
    table::DelimiterKind,
};

impl NamedBody {
    pub(super) fn arguments(&mut self, text: &str, eof: bool, cx: &Cx<'_>) -> Option<Step> {
        if let Arguments::Literals(style) = self.style.arguments {
            // Without a delimiter values without names may be those of any program.
            let named = self.properties(cx).filter(|_| !self.unmarked && !self.bare);
            let positions = named.map(|all| all.keys().cloned().collect()).unwrap_or_default();
            let marked = !self.unmarked && !self.bare;
            self.literals = Some(
                Literals::new(style, self.pos)
                    .at_positions(positions)
                    .within(self.printed)
                    .closed_by(self.row.close, marked),
            );
            self.part = Part::Literals;
            return None;
        }
        self.skip_blank(text);
        if self.unmarked {
            // The delimiter that should stand before the name.
            let wrapper =
                self.row.delimiters.iter().find(|delimiter| delimiter.kind == DelimiterKind::Wrapper);
            self.pos += wrapper
                .filter(|open| self.rest(text).starts_with(open.text))
                .map_or(0, |open| open.text.len());
        }
        if let Some((open, close)) = self.around_object() {
            match is(self.rest(text), open) {
                Is::Yes => {
                    self.pos += open.len();
                    self.around = Some(*close);
                }
                Is::Open if !eof => return Some(Step::More),
                Is::Open | Is::No => {}
            }
        }
        let behind = self.rest(text);
        let tags = matches!(self.style.arguments, Arguments::Tags(_));
        let opens = behind.starts_with('{') || !tags && behind.starts_with('"');
        if let Some(name) = self.name.clone()
            && opens
        {
            let ends = self.style.end;
            let near = self.ends_with_name(cut(text, self.start..self.pos));
            self.unsure = self.unmarked && (near || head::is_tag(&self.form.head));
            self.json = Some(Box::new(JsonBody::arguments(self.row, ends, name, self.begun, self.pos)));
            self.part = Part::Json;
            return None;
        }
        if tags && !behind.is_empty() {
            self.part = Part::Between;
            return None;
        }
        if !tags {
            match self.no_arguments(text, eof, cx) {
                Is::Yes => {
                    self.repaired = true;
                    self.part = Part::End;
                    return None;
                }
                Is::Open => return Some(Step::More),
                Is::No => {}
            }
        }
        if !tags && !behind.is_empty() && is(behind, "```") != Is::No {
            // The first line of a fence around the arguments.
            match cut(behind, 0..behind.floor_char_boundary(MAX_NAME))
                .find('\n')
                .filter(|_| behind.starts_with("```"))
            {
                Some(end) => {
                    self.pos += end;
                    return None;
                }
                None if !eof && behind.len() <= MAX_NAME => return Some(Step::More),
                None => {}
            }
        }
        if behind.is_empty() && !eof {
            return Some(Step::More);
        }
        if tags {
            self.part = Part::Between;
        } else if behind.is_empty() && self.ends_with_text(text, cx) {
            // Nothing but the name of a tool.
            self.repaired = true;
            self.part = Part::End;
        } else {
            return Some(Step::Reject(self.pos));
        }
        None
    }

    /// Whether a call without arguments is whole where the text ends: a special token that ends it is often taken out.
    fn ends_with_text(&self, text: &str, cx: &Cx<'_>) -> bool {
        let Some(name) = self.name.as_deref() else { return false };
        let alone = self.nothing_but_name(text) && !self.is_sure_name(text, cx);
        // The end of the text is the only end that calls with a plain name have.
        let plain =
            head::is_plain(&self.style.head) && cx.offered.contains(name) && !cx.offered.requires(name);
        (plain || cx.offered.takes_none(name)) && !alone
    }

    /// Whether an end stands after the delimiter that opens the arguments: the call has none.
    fn no_arguments(&self, text: &str, eof: bool, cx: &Cx<'_>) -> Is {
        let offered = || self.name.as_deref().is_some_and(|name| cx.offered.contains(name));
        if self.nothing_but_name(text) && !offered() {
            return Is::No;
        }
        // A fence may stand around them.
        let Some(at) = ahead(text, self.pos, b"`") else { return Is::No };
        let ends = self.ends().chain(self.row.stops.iter().copied()).filter(|end| !end.starts_with('`'));
        let next = self.row.delimiters.iter().map(|delimiter| delimiter.text);
        match is_any(rest(text, at), ends.chain(next)) {
            Is::Open if eof => Is::No,
            Is::Open if at == text.len() && at == self.pos => Is::No,
            found => found,
        }
    }

    /// Whether a word after a delimiter is the name of a tool: which are offered is known, or it stands close to it.
    fn is_sure_name(&self, text: &str, cx: &Cx<'_>) -> bool {
        let close = !cut(text, 0..self.start).ends_with(char::is_whitespace);
        cx.offered.is_named() || close && rest(text, self.start).starts_with(char::is_alphabetic)
    }

    /// No delimiter that opens arguments stands after the name.
    fn nothing_but_name(&self, text: &str) -> bool {
        self.ends_with_name(rest(text, self.start))
    }

    fn ends_with_name(&self, head: &str) -> bool {
        let head = head.trim_end().trim_end_matches(':');
        self.name.as_deref().is_some_and(|name| head.ends_with(name))
    }

    /// The call that the object after a word is by itself, where the word does not name a tool that takes it; an error
    /// where neither names one.
    fn whole_call(&self, call: &Ready, cx: &Cx<'_>) -> Result<Option<Envelope>, ()> {
        // Where the name has delimiters of its own, it counts if there is such a tool.
        let plain = head::is_plain(&self.style.head);
        if !cx.offered.is_named() || !plain && cx.offered.contains(&call.name) {
            return Ok(None);
        }
        let schema = cx.offered.schema(&call.name);
        let taken = |schema| members(&call.arguments).is_some_and(|names| fits(&names, schema));
        let inner = envelope(&call.arguments, JsonStyle::PLAIN).filter(|inner| inner.has_arguments);
        let Some(inner) = inner.filter(|inner| !inner.unusual && !schema.is_some_and(taken)) else {
            return Ok(None);
        };
        let name = cx.offered.resolve(inner.name);
        match cx.offered.contains(&name) {
            true => Ok(Some(Envelope { name, ..inner })),
            false if !plain || cx.offered.contains(&call.name) => Ok(None),
            false => Err(()),
        }
    }

    pub(super) fn json(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let Some(json) = &mut self.json else { return Some(Step::Reject(self.pos)) };
        match json.feed(text, eof, cx) {
            Step::Done(end) => {
                let Some(call) = json.take_ready().pop() else { return Some(Step::Reject(end)) };
                let fits = |schema| members(&call.arguments).is_some_and(|names| fits(&names, schema));
                if self.unsure && !cx.offered.schema(&call.name).is_some_and(fits) {
                    return Some(Step::Reject(end));
                }
                match self.whole_call(&call, cx) {
                    // What has been announced cannot be taken back.
                    Ok(Some(_)) if call.index.is_some() => {
                        self.begun = call.index;
                        return Some(Step::Reject(end));
                    }
                    Err(()) => return Some(Step::Reject(end)),
                    Ok(Some(inner)) => {
                        self.name = Some(inner.name);
                        self.arguments = inner.arguments;
                        self.repaired = true;
                    }
                    Ok(None) => {
                        self.arguments = call.arguments;
                        self.repaired |= call.repaired;
                    }
                }
                self.begun = call.index;
                self.sent = self.arguments.len();
                self.json = None;
                self.closed = true;
                self.pos = end;
                self.part = Part::End;
                None
            }
            step => Some(step),
        }
    }

    pub(super) fn literals(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let Some(literals) = &mut self.literals else { return Some(Step::Reject(self.pos)) };
        let read = literals.feed(text, eof, &mut self.arguments);
        self.pos = literals.pos();
        self.certain = literals.certain(&self.arguments);
        match read {
            Read::More => {
                self.send(cx);
                Some(Step::More)
            }
            Read::Fail => Some(Step::Reject(self.pos)),
            Read::Done => {
                self.repaired |= literals.repaired();
                let unnamed = literals.unnamed();
                self.certain = usize::MAX;
                self.literals = None;
                let schema = self.name.as_deref().and_then(|name| cx.offered.schema(name));
                if let Some(inner) = all_in_one(&self.arguments, unnamed, schema) {
                    self.arguments = inner;
                } else if misplaced(&self.arguments, unnamed, schema) {
                    return Some(Step::Reject(self.pos));
                }
                self.closed = true;
                self.part = Part::End;
                None
            }
        }
    }
}
