//! One answer of the model, from its pieces to events and calls.

use std::{collections::HashSet, iter, sync::Arc};

use registry_core::Origin;
use serde::de::IgnoredAny;
use serde_json::Value;
use toolrack_apis::{CallInput, FinishReason, Passing, Piece, TurnEvent, Usage};
use toolrack_dialects::{Abort, Call, Event, ScanOptions, Scanner, thinking_ends};

use super::{
    SEE_DOCTOR,
    announce::{Announced, Beginning, Place},
    call::{FoundCall, NATIVE, new_call_id},
    native::NativeCalls,
    offer::{Offer, Round, Target},
    quoted::Quotations,
    recover::Sent,
};

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

/// Takes the pieces of one answer.
pub(super) struct Reader {
    offer: Arc<Offer>,
    options: Options,
    scanner: Scanner,
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
    quotations: Quotations,
}

impl Reader {
    pub(super) fn new(offer: Arc<Offer>, options: Options, taken: HashSet<String>) -> Self {
        Self {
            announced: options.stream.then(|| Announced::new(options.scan.deltas)),
            scanner: Scanner::new(Arc::clone(&offer.offered), options.scan.clone()),
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
                let (scanner, mut taker) = self.split(false, events);
                parts(&text).for_each(|part| scanner.push(part, &mut |event| taker.take(event)));
            }
            Piece::Reasoning { text, .. } if self.options.only_calls => self.native_reasoning.push_str(&text),
            Piece::Reasoning { text, seal } => {
                self.native_reasoning.push_str(&text);
                events.push(TurnEvent::Reasoning { text, seal });
            }
            // The last one is there to be refused.
            Piece::Call(piece) if self.is_full() && piece.name.is_some() => drop(piece),
            Piece::Call(piece) => {
                let at = self.native.push(piece);
                self.announce(at, events);
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
                was_cut_off(place, &call.name, "", &mut self.announced, events);
                continue;
            }
            if !self.offer.accepts(self.options.required, &call.name) {
                events.push(is_not_required(&call.name));
                continue;
            }
            if self.options.one_call && !self.calls.is_empty() {
                events.push(is_one_too_many(&call.name));
                continue;
            }
            let announced = self.announced.as_mut().and_then(|announced| announced.finish(place, events));
            // Some servers number the calls of every answer from the start.
            let was_announced = announced.is_some();
            let (arguments, input) = match self.offer.input(&call.name) {
                // The model server knows it as a function.
                CallInput::Text if is_json => (free_text(call.arguments), CallInput::Text),
                _ => (call.arguments, call.input),
            };
            let own = || call.id.filter(|id| self.taken.insert(id.clone()));
            let found = FoundCall {
                id: announced.or_else(own).unwrap_or_else(new_call_id),
                announced: was_announced,
                target: self.offer.target(&call.name),
                wire_name: self.offer.wire_name(&call.name),
                arguments,
                input,
                origin: Origin::Native,
                source: None,
                is_quoted: false,
                raw_argument: None,
                is_interrupted: false,
                passing: call.passing,
            };
            events.extend(found.started().map(TurnEvent::Tool));
            self.calls.push(found);
        }
    }

    /// The answer ends before its end: the text that was held back is given out.
    pub(super) fn break_off(&mut self, events: &mut Vec<TurnEvent>) {
        self.finish_text(false, events);
    }

    fn finish_text(&mut self, cut_off: bool, events: &mut Vec<TurnEvent>) {
        let (scanner, mut taker) = self.split(cut_off, events);
        scanner.finish(&mut |event| taker.take(event));
    }

    /// The scanner, and what takes the things that it finds.
    fn split<'a>(
        &'a mut self,
        cut_off: bool,
        events: &'a mut Vec<TurnEvent>,
    ) -> (&'a mut Scanner, Taker<'a>) {
        let Self {
            scanner,
            offer,
            text: shown,
            reasoning,
            unread,
            quotations,
            calls,
            announced,
            options,
            ..
        } = self;
        let taker =
            Taker { offer, shown, reasoning, unread, quotations, calls, announced, events, options, cut_off };
        (scanner, taker)
    }

    /// Tells of what is new of a native call, where the client wants to hear of that.
    fn announce(&mut self, at: usize, events: &mut Vec<TurnEvent>) {
        let place = Place::Native(at);
        let Some(announced) = &mut self.announced else { return };
        let Some(call) = self.native.get_mut(at).filter(|call| !call.name.is_empty()) else { return };
        if !announced.contains(place) {
            let is_too_many = self.options.one_call && (!self.calls.is_empty() || announced.has_other(place));
            if is_too_many || !self.offer.accepts(self.options.required, &call.name) {
                return;
            }
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

/// Takes what the scanner finds.
struct Taker<'a> {
    offer: &'a Offer,
    shown: &'a mut String,
    reasoning: &'a mut String,
    unread: &'a mut Option<Abort>,
    quotations: &'a mut Quotations,
    calls: &'a mut Vec<FoundCall>,
    announced: &'a mut Option<Announced>,
    events: &'a mut Vec<TurnEvent>,
    options: &'a Options,
    /// The text has ended at the token limit: a call that it ends in may be half of one.
    cut_off: bool,
}

impl Taker<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.show(text),
            Event::Reasoning(text) => {
                self.reasoning.push_str(text);
                match self.events.last_mut() {
                    Some(TurnEvent::Reasoning { text: last, .. }) => last.push_str(text),
                    _ => self.events.push(TurnEvent::Reasoning { text: text.to_owned(), seal: None }),
                }
            }
            Event::Call(call) if !self.offer.is_call(&call.name) => {
                if !call.shown {
                    self.show(&call.source);
                }
            }
            // The last one is there to be refused.
            Event::Call(_) if are_enough(self.calls, self.options) => {}
            Event::Call(call) if self.cut_off && !call.closed => {
                was_cut_off(Place::Text(call.index), &call.name, &call.source, self.announced, self.events);
                if !call.shown {
                    self.show(&call.source);
                }
            }
            Event::Call(call) if !self.offer.accepts(self.options.required, &call.name) => {
                self.events.push(is_not_required(&call.name));
            }
            Event::Call(call) if self.has_its_one_call(Place::Text(call.index)) => {
                self.events.push(is_one_too_many(&call.name));
            }
            Event::Call(call) => {
                let place = Place::Text(call.index);
                let id = self.announced.as_mut().and_then(|announced| announced.finish(place, self.events));
                let is_quoted = self.quotations.have(self.shown, &call.source);
                let found = FoundCall { is_quoted, ..found(call, id, self.offer) };
                self.events.extend(found.started().map(TurnEvent::Tool));
                self.calls.push(found);
            }
            Event::Aborted { index, source, reason } => {
                *self.unread = Some(reason);
                let announced = self.announced.as_mut();
                let was_announced = announced.is_some_and(|announced| {
                    announced.abort(Place::Text(index), source, &reason.to_string(), self.events)
                });
                if !was_announced {
                    self.events
                        .push(TurnEvent::Notice(format!("A tool call is not run: {reason}; {SEE_DOCTOR}")));
                }
            }
            Event::CallBegin { index, name, dialect } => {
                let place = Place::Text(index);
                if !self.has_its_one_call(place)
                    && !are_enough(self.calls, self.options)
                    && self.offer.is_call(name)
                    && self.offer.accepts(self.options.required, name)
                    && let Some(announced) = self.announced
                {
                    let (input, passing) = (CallInput::Json, Passing::none());
                    let call = Beginning { name, dialect, own_id: None, input, passing };
                    announced.begin(place, call, self.offer, self.events);
                }
            }
            Event::CallDelta { index, arguments } => {
                if let Some(announced) = self.announced {
                    announced.delta(Place::Text(index), arguments, self.events);
                }
            }
            Event::Frame(_) => {}
        }
    }

    /// Whether another call than this one is the only one that counts.
    fn has_its_one_call(&self, place: Place) -> bool {
        let announced = self.announced.as_ref();
        self.options.one_call
            && (!self.calls.is_empty() || announced.is_some_and(|announced| announced.has_other(place)))
    }

    fn show(&mut self, text: &str) {
        self.shown.push_str(text);
        if self.options.quiet {
            return;
        }
        match self.events.last_mut() {
            Some(TurnEvent::Text(last)) if last.len() < EVENT_TEXT => last.push_str(text),
            _ => self.events.push(TurnEvent::Text(text.to_owned())),
        }
    }
}

fn found(call: Call, id: Option<String>, offer: &Offer) -> FoundCall {
    let raw_argument = (call.dialect == toolrack_dialects::TAG_LINE)
        .then(|| call.source.split_once(':').map(|(_, argument)| argument.trim().to_owned()))
        .flatten();
    let input = offer.input(&call.name);
    FoundCall {
        announced: id.is_some(),
        id: id.unwrap_or_else(new_call_id),
        target: offer.target(&call.name),
        wire_name: offer.wire_name(&call.name),
        arguments: match input {
            CallInput::Json => call.arguments,
            CallInput::Text => free_text(call.arguments),
        },
        input,
        origin: Origin::Text(call.dialect.into()),
        source: Some(call.source),
        is_quoted: false,
        is_interrupted: false,
        raw_argument,
        passing: Passing::none(),
    }
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

/// Asked again the model would come to the same limit.
fn was_cut_off(
    place: Place,
    name: &str,
    source: &str,
    announced: &mut Option<Announced>,
    events: &mut Vec<TurnEvent>,
) {
    let reason = "it was cut off at the token limit";
    if !announced.as_mut().is_some_and(|announced| announced.abort(place, source, reason, events)) {
        events.push(TurnEvent::Notice(format!(
            "A call of {name} was cut off at the token limit and is not run"
        )));
    }
}

fn is_one_too_many(name: &str) -> TurnEvent {
    TurnEvent::Notice(format!("A call of {name} is not run: the request asks for one call at a time"))
}

fn is_not_required(name: &str) -> TurnEvent {
    TurnEvent::Notice(format!("A call of {name} is not run: `tool_choice` requires another tool"))
}
