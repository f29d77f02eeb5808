//! One answer of the model, from its pieces to events and calls.

use std::{collections::HashSet, iter, sync::Arc};

use registry_core::{Origin, text::cut};
use serde::de::IgnoredAny;
use serde_json::Value;
use toolrack_apis::{CallInput, FinishReason, Passing, Piece, TurnEvent, Usage};
use toolrack_dialects::{Abort, Event, ScanOptions, Scanner, TAG_LINE, thinking_ends};

use super::{
    SEE_DOCTOR,
    announce::{Announced, Beginning, Place},
    call::{FoundCall, NATIVE, new_call_id},
    native::NativeCalls,
    offer::{Offer, Round, Target},
    quoted::Quotations,
    recover::Sent,
};
use crate::{append::append, written::Written};

/// How an answer is read.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) scan: ScanOptions,
    /// Whether the client reads a stream, and so the calls of its tools while the model server sends them.
    pub(super) stream: bool,
    /// Only the first call counts.
    pub(super) one_call: bool,
    /// The round, where it requires a call: only of the tools that it offers.
    pub(super) required: Option<Round>,
    /// Whether the model can write nothing but calls. A server that takes its template to have opened the model's thinking hands them out
    /// as that.
    pub(super) only_calls: bool,
    /// Whether text is only collected.
    pub(super) quiet: bool,
    /// How many calls of the server's tools are read.
    pub(super) max_calls: usize,
}

/// How many calls are read in any case.
const MOST_CALLS: usize = 1024;

/// About how much text an event has at most, in bytes: the events that wait for a slow client are counted, not measured.
const EVENT_TEXT: usize = 4096;

/// So much is kept of a model server's word for why an answer ended, in bytes.
const MAX_REASON: usize = 64;

/// Takes the pieces of one answer.
pub(super) struct Reader {
    offer: Arc<Offer>,
    options: Options,
    /// `None` while it hands out what it finds.
    scanner: Option<Box<Scanner>>,
    native: NativeCalls,
    /// The calls that are on their way, where the client reads a stream.
    announced: Option<Announced>,
    /// The ids of calls that are in the conversation already.
    taken: HashSet<String>,
    pub(super) text: String,
    pub(super) native_reasoning: String,
    /// The thinking that stood in the text.
    pub(super) reasoning: String,
    /// Why the last call that had begun in the text is none.
    pub(super) unread: Option<Abort>,
    pub(super) calls: Vec<FoundCall>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<Usage>,
    /// The content as the server sent it.
    sent: Sent,
    /// The answer as the model wrote it.
    pub(super) written: Written,
    quotations: Quotations,
}

impl Reader {
    pub(super) fn new(offer: Arc<Offer>, options: Options, taken: HashSet<String>) -> Self {
        Self {
            announced: options.stream.then(|| Announced::new(options.scan.deltas)),
            scanner: Some(Box::new(Scanner::new(Arc::clone(&offer.offered), options.scan.clone()))),
            options,
            offer,
            native: NativeCalls::default(),
            taken,
            text: String::new(),
            native_reasoning: String::new(),
            reasoning: String::new(),
            unread: None,
            calls: Vec::new(),
            finish: None,
            usage: None,
            sent: Sent::default(),
            written: Written::default(),
            quotations: Quotations::default(),
        }
    }

    /// Whether there are as many calls as are read; what follows is not worth waiting for.
    pub(super) fn is_full(&self) -> bool {
        let native = || self.native.names().filter(|name| !self.offer.is_clients(name)).count();
        are_enough(&self.calls, &self.options)
            || self.native.len() >= self.options.max_calls
                && (self.native.len() >= MOST_CALLS || native() >= self.options.max_calls)
    }

    /// Takes a piece; what comes of it is added to `events`.
    pub(super) fn take(&mut self, piece: Piece, events: &mut Vec<TurnEvent>) {
        match piece {
            Piece::Text(text) => {
                self.sent.push(&text);
                self.written.push(&text);
                let Some(mut scanner) = self.scanner.take() else { return };
                for part in parts(&text) {
                    scanner.push(part, &mut |event| self.take_found(event, false, events));
                }
                self.scanner = Some(scanner);
                self.written.compare(&self.text);
            }
            Piece::Reasoning { text, .. } if self.options.only_calls => {
                append(&mut self.native_reasoning, &text)
            }
            Piece::Reasoning { text, seal } => {
                append(&mut self.native_reasoning, &text);
                events.push(TurnEvent::Reasoning { text, seal });
            }
            // The last one is there to be refused.
            Piece::Call(piece) if self.is_full() && piece.name.is_some() => drop(piece),
            Piece::Call(piece) => {
                let at = self.native.push(piece);
                self.announce(at, events);
            }
            Piece::Finish(FinishReason::Other(word)) => {
                self.finish = Some(FinishReason::Other(cut(word, MAX_REASON)));
            }
            Piece::Finish(reason) => self.finish = Some(reason),
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Passing(fields) => events.push(TurnEvent::Passing(fields)),
        }
    }

    /// The answer is at its end.
    pub(super) fn end(&mut self, events: &mut Vec<TurnEvent>) {
        if self.options.only_calls && self.sent.is_empty() {
            let text = std::mem::take(&mut self.native_reasoning);
            self.take(Piece::Text(text), events);
        }
        let cut_off = self.finish == Some(FinishReason::Length);
        self.finish_text(cut_off, events);
        for (at, call) in std::mem::take(&mut self.native).into_calls().into_iter().enumerate() {
            let place = Place::Native(at);
            if call.name.is_empty() {
                events.push(TurnEvent::Notice(format!("A call without a name is not run; {SEE_DOCTOR}")));
                continue;
            }
            let is_json = call.input == CallInput::Json;
            if cut_off && is_json && serde_json::from_str::<IgnoredAny>(&call.arguments).is_err() {
                self.was_cut_off(place, &call.name, "", events);
            } else if self.admits(place, &call.name, events) {
                // Some servers number the calls of every answer from the start.
                let own_id = call.id.filter(|id| self.taken.insert(id.clone()));
                let found = self.found(place, &call.name, (call.arguments, call.input), own_id, events);
                self.add(FoundCall { passing: call.passing, ..found }, events);
            }
        }
    }

    /// The answer ends before its end: the text that was held back is given out.
    pub(super) fn break_off(&mut self, events: &mut Vec<TurnEvent>) {
        self.finish_text(false, events);
    }

    fn finish_text(&mut self, cut_off: bool, events: &mut Vec<TurnEvent>) {
        let Some(mut scanner) = self.scanner.take() else { return };
        scanner.finish(&mut |event| self.take_found(event, cut_off, events));
        self.scanner = Some(scanner);
    }

    /// Takes what the scanner finds. Where the text was cut off at the token limit, a call that it ends in may be half of one.
    fn take_found(&mut self, event: Event<'_>, cut_off: bool, events: &mut Vec<TurnEvent>) {
        match event {
            Event::Text(text) => self.show(text, events),
            Event::Reasoning(text) => {
                append(&mut self.reasoning, text);
                match events.last_mut() {
                    Some(TurnEvent::Reasoning { text: last, .. }) => last.push_str(text),
                    _ => events.push(TurnEvent::Reasoning { text: text.to_owned(), seal: None }),
                }
            }
            Event::Call(call) if !self.offer.is_call(&call.name) => {
                if !call.shown {
                    self.show(&call.source, events);
                }
            }
            // The last one is there to be refused.
            Event::Call(_) if are_enough(&self.calls, &self.options) => self.written.leave_out(),
            Event::Call(call) if cut_off && !call.closed => {
                self.was_cut_off(Place::Text(call.index), &call.name, &call.source, events);
                self.written.leave_out();
                if !call.shown {
                    self.show(&call.source, events);
                }
            }
            Event::Call(call) => {
                let place = Place::Text(call.index);
                if self.admits(place, &call.name, events) {
                    let written = (call.arguments, CallInput::Json);
                    let found = FoundCall {
                        raw_argument: (call.dialect == TAG_LINE)
                            .then(|| behind_the_tag(&call.source))
                            .flatten(),
                        is_quoted: self.quotations.have(&self.text, &call.source),
                        origin: Origin::Text(call.dialect.into()),
                        source: Some(call.source),
                        ..self.found(place, &call.name, written, None, events)
                    };
                    self.add(found, events);
                } else {
                    self.written.leave_out();
                }
            }
            Event::Aborted { index, source, reason } => {
                self.unread = Some(reason);
                self.written.leave_out();
                if !self.aborts(Place::Text(index), source, &reason.to_string(), events) {
                    events.push(TurnEvent::Notice(format!("A tool call is not run: {reason}; {SEE_DOCTOR}")));
                }
            }
            Event::CallBegin { index, name, dialect } => {
                let place = Place::Text(index);
                if !are_enough(&self.calls, &self.options)
                    && self.offer.is_call(name)
                    && self.may_begin(place, name)
                    && let Some(announced) = &mut self.announced
                {
                    let (input, passing) = (CallInput::Json, Passing::none());
                    let call = Beginning { name, dialect, own_id: None, input, passing };
                    announced.begin(place, call, &self.offer, events);
                }
            }
            Event::CallDelta { index, arguments } => {
                if let Some(announced) = &mut self.announced {
                    announced.delta(Place::Text(index), arguments, events);
                }
            }
            Event::Frame(_) => {}
        }
    }

    fn show(&mut self, text: &str, events: &mut Vec<TurnEvent>) {
        append(&mut self.text, text);
        if self.options.quiet {
            return;
        }
        match events.last_mut() {
            Some(TurnEvent::Text(last)) if last.len() < EVENT_TEXT => last.push_str(text),
            _ => events.push(TurnEvent::Text(text.to_owned())),
        }
    }

    /// Whether a call is one that the request allows for; if not, it says why.
    fn admits(&self, place: Place, name: &str, events: &mut Vec<TurnEvent>) -> bool {
        let why = if !self.offer.accepts(self.options.required, name) {
            "`tool_choice` requires another tool"
        } else if self.has_its_one_call(place) {
            "the request asks for one call at a time"
        } else {
            return true;
        };
        events.push(TurnEvent::Notice(format!("A call of {name} is not run: {why}")));
        false
    }

    /// Whether a call that begins is one that the request allows for.
    fn may_begin(&self, place: Place, name: &str) -> bool {
        !self.has_its_one_call(place) && self.offer.accepts(self.options.required, name)
    }

    /// Whether another call than this one is the only one that counts.
    fn has_its_one_call(&self, place: Place) -> bool {
        let announced = self.announced.as_ref();
        self.options.one_call
            && (!self.calls.is_empty() || announced.is_some_and(|announced| announced.has_other(place)))
    }

    /// A whole call, as the model server has read it where nothing else is said.
    fn found(
        &mut self,
        place: Place,
        name: &str,
        (arguments, input): (String, CallInput),
        own_id: Option<String>,
        events: &mut Vec<TurnEvent>,
    ) -> FoundCall {
        let announced = self.announced.as_mut().and_then(|announced| announced.finish(place, events));
        let (arguments, input) = match self.offer.input(name) {
            // The model, or its server, knows it as a function.
            CallInput::Text if input == CallInput::Json => (free_text(arguments), CallInput::Text),
            _ => (arguments, input),
        };
        FoundCall {
            announced: announced.is_some(),
            id: announced.or(own_id).unwrap_or_else(new_call_id),
            target: self.offer.target(name),
            wire_name: self.offer.wire_name(name),
            arguments,
            input,
            origin: Origin::Native,
            source: None,
            is_quoted: false,
            raw_argument: None,
            is_interrupted: false,
            passing: Passing::none(),
        }
    }

    fn add(&mut self, call: FoundCall, events: &mut Vec<TurnEvent>) {
        events.extend(call.started().map(TurnEvent::Tool));
        self.calls.push(call);
    }

    /// Takes back a call that was announced; whether it was.
    fn aborts(&mut self, place: Place, source: &str, reason: &str, events: &mut Vec<TurnEvent>) -> bool {
        self.announced.as_mut().is_some_and(|announced| announced.abort(place, source, reason, events))
    }

    /// Asked again the model would come to the same limit.
    fn was_cut_off(&mut self, place: Place, name: &str, source: &str, events: &mut Vec<TurnEvent>) {
        if !self.aborts(place, source, "it was cut off at the token limit", events) {
            let notice = format!("A call of {name} was cut off at the token limit and is not run");
            events.push(TurnEvent::Notice(notice));
        }
    }

    /// Tells of what is new of a native call, where the client wants to hear of that.
    fn announce(&mut self, at: usize, events: &mut Vec<TurnEvent>) {
        let place = Place::Native(at);
        let Some(call) = self.native.get(at).filter(|call| !call.name.is_empty()) else { return };
        let is_new = self.announced.as_ref().is_some_and(|announced| !announced.contains(place));
        if is_new && !self.may_begin(place, &call.name) {
            return;
        }
        let Some(announced) = &mut self.announced else { return };
        if is_new {
            let own_id = call.id.clone().filter(|id| !self.taken.contains(id));
            let (name, input, passing) = (call.name.as_str(), call.input, call.passing.clone());
            let call = Beginning { name, dialect: NATIVE, own_id, input, passing };
            announced.begin(place, call, &self.offer, events);
        }
        if let Some(call) = self.native.get_mut(at) {
            announced.delta(place, call.unreported(), events);
        }
    }

    /// The calls that the server has begun to read itself are not gone on with.
    pub(super) fn forget_native(&mut self, events: &mut Vec<TurnEvent>) {
        let count = std::mem::take(&mut self.native).into_calls().len();
        let Some(announced) = &mut self.announced else { return };
        for at in 0..count {
            announced.abort(Place::Native(at), "", "the model server could not read it", events);
        }
    }

    /// Why the answer has no call, where it was to have one that the model may write once more.
    pub(super) fn unread_call(&self) -> Option<Abort> {
        let may_be_mended = matches!(self.unread, Some(Abort::Unreadable | Abort::Incomplete));
        let is_cut_off = self.finish == Some(FinishReason::Length);
        self.unread.filter(|_| may_be_mended && !is_cut_off && self.calls.is_empty())
    }

    /// Whether the model has thought before it answered.
    pub(super) fn has_thought(&self) -> bool {
        !self.native_reasoning.is_empty() || !self.reasoning.trim().is_empty()
    }

    /// Whether nothing has been shown yet.
    pub(super) fn is_blank(&self) -> bool {
        self.sent.is_empty() && self.native_reasoning.is_empty()
    }

    /// Whether the model has begun to answer, if only with a call.
    pub(super) fn has_begun(&self) -> bool {
        !self.is_blank() || !self.native.is_empty()
    }

    /// What of the model's whole text is new after what the server has sent already. The calls that the server has begun to read
    /// are in the text, and are read from there.
    pub(super) fn unread(&self, raw: &str) -> String {
        let mut rest = raw;
        if let Some((_, after)) = split_once(rest, self.native_reasoning.trim()) {
            let mark = thinking_ends().find_map(|close| after.trim_start().strip_prefix(close));
            rest = mark.unwrap_or(after);
            rest = if mark.is_some() { rest.trim_start() } else { rest };
        }
        self.sent.rest_of(rest).to_owned()
    }
}

/// Whether no more calls are read than these.
fn are_enough(calls: &[FoundCall], options: &Options) -> bool {
    let is_server = |call: &&FoundCall| call.target != Target::Client;
    calls.len() >= options.max_calls
        && (calls.len() >= MOST_CALLS || calls.iter().filter(is_server).count() >= options.max_calls)
}

/// A text in parts of the size of an event.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        let (part, after) = rest.split_at(rest.floor_char_boundary(EVENT_TEXT));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

fn split_once<'t>(text: &'t str, part: &str) -> Option<(&'t str, &'t str)> {
    if part.is_empty() { None } else { text.split_once(part) }
}

/// The argument of a call in one line: what stands behind its tag.
fn behind_the_tag(source: &str) -> Option<String> {
    source.split_once(':').map(|(_, argument)| argument.trim().to_owned())
}

/// The free text in the one argument that a prompt has for it.
fn free_text(arguments: String) -> String {
    match serde_json::from_str::<Value>(&arguments) {
        Ok(Value::Object(mut fields)) => match fields.shift_remove("input") {
            Some(Value::String(text)) => text,
            _ => arguments,
        },
        Ok(Value::String(text)) => text,
        _ => arguments,
    }
}
