//! Reports calls while the model writes them, for a client that asked for that.

use super::{
    TurnEvent,
    offer::{Offer, Target},
    reader::new_call_id,
};

/// Which call of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The one of this index in the text.
    Text(usize),
    /// The one of this index among those that the model server has read itself.
    Native(usize),
}

/// A call that has been announced.
#[derive(Debug)]
struct Begun {
    place: Place,
    id: String,
    name: String,
    /// No argument has been reported yet.
    blank: bool,
}

/// The calls of one answer that have been announced and are not whole yet.
#[derive(Debug, Default)]
pub(super) struct Announced(Vec<Begun>);

impl Announced {
    /// Whether a call that is not whole yet has been announced beside this one.
    pub(super) fn has_other(&self, place: Place) -> bool {
        self.0.iter().any(|call| call.place != place)
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        self.0.iter().any(|call| call.place == place)
    }

    /// A call has begun. `own_id` is the one that the model server gave it; calls of the client's tools never have that, because
    /// what a turn leaves behind is found by theirs, and another server's may be those of any conversation.
    pub(super) fn begin(
        &mut self,
        place: Place,
        (name, dialect): (&str, &str),
        own_id: Option<String>,
        offer: &Offer,
        events: &mut Vec<TurnEvent>,
    ) {
        let (name, is_client) = match offer.target(name) {
            Target::Client => (name.to_owned(), true),
            Target::Server(name) => (name, false),
        };
        let id = own_id.filter(|_| !is_client).unwrap_or_else(new_call_id);
        events.push(TurnEvent::CallBegun {
            id: id.clone(),
            name: name.clone(),
            is_client,
            dialect: dialect.to_owned(),
        });
        self.0.push(Begun { place, id, name, blank: true });
    }

    /// The next piece of a call's arguments.
    pub(super) fn delta(&mut self, place: Place, arguments: &str, events: &mut Vec<TurnEvent>) {
        let Some(call) = self.0.iter_mut().find(|call| call.place == place) else { return };
        call.blank &= arguments.trim().is_empty();
        match events.last_mut() {
            _ if arguments.is_empty() => {}
            Some(TurnEvent::CallDelta { id, arguments: before }) if *id == call.id => {
                before.push_str(arguments);
            }
            _ => {
                events.push(TurnEvent::CallDelta { id: call.id.clone(), arguments: arguments.to_owned() });
            }
        }
    }

    /// A call is whole; its id, where it was announced.
    pub(super) fn finish(&mut self, place: Place, events: &mut Vec<TurnEvent>) -> Option<String> {
        if self.0.iter().any(|call| call.place == place && call.blank) {
            // No arguments at all are an empty object everywhere.
            self.delta(place, "{}", events);
        }
        self.take(place).map(|call| call.id)
    }

    /// A call is none; whether it was announced. What has not been sent yet is not sent at all.
    pub(super) fn abort(
        &mut self,
        place: Place,
        source: &str,
        reason: &str,
        events: &mut Vec<TurnEvent>,
    ) -> bool {
        let Some(Begun { id, name, .. }) = self.take(place) else { return false };
        let begins =
            |event: &TurnEvent| matches!(event, TurnEvent::CallBegun { id: begun, .. } if *begun == id);
        if events.iter().any(begins) {
            let goes_on =
                |event: &TurnEvent| matches!(event, TurnEvent::CallDelta { id: begun, .. } if *begun == id);
            events.retain(|event| !begins(event) && !goes_on(event));
            return false;
        }
        events.push(TurnEvent::CallAborted {
            id,
            name,
            source: source.to_owned(),
            reason: reason.to_owned(),
        });
        true
    }

    fn take(&mut self, place: Place) -> Option<Begun> {
        let at = self.0.iter().position(|call| call.place == place)?;
        Some(self.0.remove(at))
    }
}

/// The announced calls of a turn of which neither has been said that they are made nor that they are not.
#[derive(Debug, Default)]
pub(super) struct Unsettled(Vec<(String, String)>);

impl Unsettled {
    /// Takes note of an event that is reported.
    pub(super) fn note(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::CallBegun { id, name, .. } => self.0.push((id.clone(), name.clone())),
            TurnEvent::CallStarted { id, .. } | TurnEvent::CallAborted { id, .. } => {
                self.0.retain(|(begun, _)| begun != id);
            }
            TurnEvent::ClientCalls(calls) => {
                self.0.retain(|(begun, _)| calls.iter().all(|call| call.id != *begun));
            }
            _ => {}
        }
    }

    /// None of them will be made.
    pub(super) fn abort(&mut self, reason: &str) -> Vec<TurnEvent> {
        let all = self.0.drain(..);
        all.map(|(id, name)| TurnEvent::CallAborted {
            id,
            name,
            source: String::new(),
            reason: reason.to_owned(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Arc};

    use registry_core::{Caller, Permission, Registry};
    use serde_json::json;
    use toolrack_apis::openai::{CallPiece, ChatRequest, Piece};
    use toolrack_dialects::ScanOptions;

    use super::*;
    use crate::chat::{Backend, ChatSettings, Upstream, reader::Reader};

    fn reader(deltas: bool) -> Reader {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
        let request = ChatRequest::from_json(json!({
            "messages": [{"role": "user", "content": "Go."}],
            "tools": [{"type": "function", "function": {"name": "f"}}],
        }));
        let context = backend.registry().context(Caller::new("ada", Permission::User));
        let offer = Offer::new(&backend, &request.unwrap(), context).unwrap();
        let options = ScanOptions { deltas, ..ScanOptions::default() };
        Reader::new(Arc::new(offer), options, HashSet::new(), false)
    }

    #[test]
    fn a_piece_costs_nothing_where_deltas_are_not_asked_for() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let native = |name: Option<&str>, arguments: &str| {
            let name = name.map(str::to_owned);
            Piece::Call(CallPiece { index: Some(0), id: None, name, arguments: arguments.to_owned() })
        };
        for deltas in [false, true] {
            let (mut reader, mut events) = (reader(deltas), Vec::new());
            for piece in [
                native(Some("f"), ""),
                native(None, "{\"a\":"),
                native(None, "1}"),
                text("<tool_call>{\"name\": \"f\", \"argum"),
                text("ents\": {\"a\": \"x"),
                text("y"),
            ] {
                reader.take(piece, &mut events);
            }
            assert_eq!(events.capacity() > 0, deltas, "not even room for events: {events:?}");
            events.clear();
            reader.end(&mut events);
            let aborted = events.iter().filter(|event| matches!(event, TurnEvent::CallAborted { .. }));
            assert_eq!(aborted.count(), usize::from(deltas), "what was reported is taken back: {events:?}");
        }
    }
}
