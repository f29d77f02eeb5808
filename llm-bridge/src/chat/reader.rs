//! One answer of the model, from its pieces to events and calls.

use std::{collections::HashSet, sync::Arc};

use registry_core::Origin;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use toolrack_apis::openai::{self, Piece};
use toolrack_dialects::{Call, Event, ScanOptions, Scanner, thinking_ends};

use super::{
    TurnEvent,
    announce::{Announced, Place},
    native::NativeCalls,
    offer::{Offer, Target},
};

/// What the text of arguments that are no object stands under in the conversation.
const NO_OBJECT: &str = "INVALID_JSON";
/// What calls that the model server has read itself have in place of a dialect.
const NATIVE: &str = "native";

/// A call that the model has made.
#[derive(Debug, Clone)]
pub(super) struct FoundCall {
    pub(super) id: String,
    /// The client knows it by this id.
    pub(super) announced: bool,
    /// The name that it has in the conversation.
    pub(super) wire_name: String,
    pub(super) target: Target,
    /// The arguments as JSON text, which may be broken.
    pub(super) arguments: String,
    pub(super) origin: Origin,
    /// The text behind the tag, for a tag line.
    pub(super) raw_argument: Option<String>,
}

impl FoundCall {
    /// The arguments as they stand in the conversation, where servers take objects only: what is none is kept in one.
    pub(super) fn arguments_object(&self) -> Value {
        let object = match self.arguments_value() {
            Value::String(text) => openai::read_json(&text).unwrap_or_default(),
            value => value,
        };
        if object.is_object() { object } else { json!({ NO_OBJECT: self.arguments }) }
    }

    /// The arguments as a value; text that is no JSON stays text.
    pub(super) fn arguments_value(&self) -> Value {
        self.read_arguments().unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }

    /// The arguments as JSON.
    pub(super) fn read_arguments(&self) -> Result<Value, serde_json::Error> {
        if self.arguments.trim().is_empty() { Ok(json!({})) } else { openai::read_json(&self.arguments) }
    }
}

/// Takes the pieces of one answer.
pub(super) struct Reader {
    offer: Arc<Offer>,
    scanner: Scanner,
    native: NativeCalls,
    /// The calls that are on their way, where the client wants to hear of those.
    announced: Option<Announced>,
    /// The ids of calls that are in the conversation already.
    taken: HashSet<String>,
    /// Only the first call counts.
    one_call: bool,
    pub(super) text: String,
    pub(super) native_reasoning: String,
    pub(super) calls: Vec<FoundCall>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Value>,
    /// All of the content as the server sent it, to tell what of a recovered text is new.
    pub(super) raw: String,
}

impl Reader {
    pub(super) fn new(
        offer: Arc<Offer>,
        options: ScanOptions,
        taken: HashSet<String>,
        one_call: bool,
    ) -> Self {
        Self {
            announced: options.deltas.then(Announced::default),
            scanner: Scanner::new(Arc::clone(&offer.offered), options),
            offer,
            native: NativeCalls::default(),
            taken,
            one_call,
            text: String::new(),
            native_reasoning: String::new(),
            calls: Vec::new(),
            finish: None,
            usage: None,
            raw: String::new(),
        }
    }

    /// Takes a piece; what comes of it is added to `events`.
    pub(super) fn take(&mut self, piece: Piece, events: &mut Vec<TurnEvent>) {
        match piece {
            Piece::Text(text) => {
                self.raw.push_str(&text);
                let (scanner, mut taker) = self.split(false, events);
                scanner.push(&text, &mut |event| taker.take(event));
            }
            Piece::Reasoning(text) => {
                self.native_reasoning.push_str(&text);
                events.push(TurnEvent::Reasoning(text));
            }
            Piece::Call(piece) => {
                let at = self.native.push(piece);
                self.announce(at, events);
            }
            Piece::Finish(reason) => self.finish = Some(reason),
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Extra(fields) => events.push(TurnEvent::Extra(fields)),
        }
    }

    /// The answer is at its end.
    pub(super) fn end(&mut self, events: &mut Vec<TurnEvent>) {
        let cut_off = self.finish.as_deref() == Some("length");
        self.finish_text(cut_off, events);
        for (at, call) in std::mem::take(&mut self.native).into_calls().into_iter().enumerate() {
            let place = Place::Native(at);
            if call.name.is_empty() {
                events.push(TurnEvent::Notice("A call without a name is not run".to_owned()));
                continue;
            }
            if cut_off && serde_json::from_str::<IgnoredAny>(&call.arguments).is_err() {
                was_cut_off(place, &call.name, "", &mut self.announced, events);
                continue;
            }
            if self.one_call && !self.calls.is_empty() {
                events.push(is_one_too_many(&call.name));
                continue;
            }
            let announced = self.announced.as_mut().and_then(|announced| announced.finish(place, events));
            // Some servers number the calls of every answer from the start.
            let was_announced = announced.is_some();
            let own = || call.id.filter(|id| self.taken.insert(id.clone()));
            let found = FoundCall {
                id: announced.or_else(own).unwrap_or_else(new_call_id),
                announced: was_announced,
                target: self.offer.target(&call.name),
                wire_name: self.offer.wire_name(&call.name),
                arguments: call.arguments,
                origin: Origin::Native,
                raw_argument: None,
            };
            announce(&found, events);
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
        let Self { scanner, offer, text: shown, calls, announced, one_call, .. } = self;
        (scanner, Taker { offer, shown, calls, announced, events, one_call: *one_call, cut_off })
    }

    /// Tells of what is new of a native call, where the client wants to hear of that.
    fn announce(&mut self, at: usize, events: &mut Vec<TurnEvent>) {
        let place = Place::Native(at);
        let Some(announced) = &mut self.announced else { return };
        let Some(call) = self.native.get_mut(at).filter(|call| !call.name.is_empty()) else { return };
        if !announced.contains(place) {
            if self.one_call && (!self.calls.is_empty() || announced.has_other(place)) {
                return;
            }
            let own_id = call.id.clone().filter(|id| self.taken.insert(id.clone()));
            announced.begin(place, (&call.name, NATIVE), own_id, &self.offer, events);
        }
        announced.delta(place, call.untold(), events);
    }

    /// The calls that the server has begun to read itself are not gone on with.
    pub(super) fn forget_native(&mut self, events: &mut Vec<TurnEvent>) {
        let count = std::mem::take(&mut self.native).into_calls().len();
        let Some(announced) = &mut self.announced else { return };
        for at in 0..count {
            announced.abort(Place::Native(at), "", "the model server could not read it", events);
        }
    }

    /// Whether nothing has been shown yet.
    pub(super) fn is_blank(&self) -> bool {
        self.raw.is_empty() && self.native_reasoning.is_empty()
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
        split_once(rest, &self.raw).map_or(rest, |(_, after)| after).to_owned()
    }
}

fn split_once<'t>(text: &'t str, part: &str) -> Option<(&'t str, &'t str)> {
    if part.is_empty() { None } else { text.split_once(part) }
}

/// Takes what the scanner finds.
struct Taker<'a> {
    offer: &'a Offer,
    shown: &'a mut String,
    calls: &'a mut Vec<FoundCall>,
    announced: &'a mut Option<Announced>,
    events: &'a mut Vec<TurnEvent>,
    one_call: bool,
    /// The text has ended at the token limit: a call that it ends in may be half of one.
    cut_off: bool,
}

impl Taker<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.show(text),
            Event::Reasoning(text) => match self.events.last_mut() {
                Some(TurnEvent::Reasoning(last)) => last.push_str(text),
                _ => self.events.push(TurnEvent::Reasoning(text.to_owned())),
            },
            Event::Call(call) if self.cut_off && !call.closed => {
                was_cut_off(Place::Text(call.index), &call.name, &call.source, self.announced, self.events);
                if !call.shown {
                    self.show(&call.source);
                }
            }
            Event::Call(call) if self.has_its_one_call(Place::Text(call.index)) => {
                self.events.push(is_one_too_many(&call.name));
            }
            Event::Call(call) => {
                let place = Place::Text(call.index);
                let id = self.announced.as_mut().and_then(|announced| announced.finish(place, self.events));
                let found = found(call, id, self.offer);
                announce(&found, self.events);
                self.calls.push(found);
            }
            Event::Aborted { index, source, reason } => {
                let announced = self.announced.as_mut();
                let was_announced = announced.is_some_and(|announced| {
                    announced.abort(Place::Text(index), source, &reason.to_string(), self.events)
                });
                if !was_announced {
                    self.events.push(TurnEvent::Notice(format!("A tool call is not run: {reason}")));
                }
            }
            Event::CallBegin { index, name, dialect } => {
                let place = Place::Text(index);
                if !self.has_its_one_call(place)
                    && let Some(announced) = self.announced
                {
                    announced.begin(place, (name, dialect), None, self.offer, self.events);
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
        self.one_call
            && (!self.calls.is_empty() || announced.is_some_and(|announced| announced.has_other(place)))
    }

    fn show(&mut self, text: &str) {
        self.shown.push_str(text);
        match self.events.last_mut() {
            Some(TurnEvent::Text(last)) => last.push_str(text),
            _ => self.events.push(TurnEvent::Text(text.to_owned())),
        }
    }
}

fn found(call: Call, id: Option<String>, offer: &Offer) -> FoundCall {
    let raw_argument = (call.dialect == toolrack_dialects::TAG_LINE)
        .then(|| call.source.split_once(':').map(|(_, argument)| argument.trim().to_owned()))
        .flatten();
    FoundCall {
        announced: id.is_some(),
        id: id.unwrap_or_else(new_call_id),
        target: offer.target(&call.name),
        wire_name: offer.wire_name(&call.name),
        arguments: call.arguments,
        origin: Origin::Text(call.dialect.into()),
        raw_argument,
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

fn announce(call: &FoundCall, events: &mut Vec<TurnEvent>) {
    if let Target::Server(name) = &call.target {
        events.push(TurnEvent::CallStarted {
            id: call.id.clone(),
            name: name.clone(),
            arguments: call.arguments_value(),
            dialect: match &call.origin {
                Origin::Text(dialect) => dialect.to_string(),
                _ => NATIVE.to_owned(),
            },
        });
    }
}

/// An id that no other call of this server has: nine letters and digits, which is the form that Mistral's templates ask for
/// and all others take.
pub(super) fn new_call_id() -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    (0..9)
        .filter_map(|_| DIGITS.get(fastrand::usize(..DIGITS.len())))
        .map(|digit| char::from(*digit))
        .collect()
}
