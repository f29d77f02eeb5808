//! Reports calls while the model writes them: those of the client's tools in a stream, those of the server's where the client asked
//! for that.

use toolrack_apis::{CallInput, Passing, ToolStatus, TurnEvent};

use super::{
    call::new_call_id,
    offer::{Offer, Target},
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
    is_client: bool,
    /// No argument has been reported yet.
    blank: bool,
}

/// What is known of a call at its beginning.
pub(super) struct Beginning<'a> {
    pub(super) name: &'a str,
    /// `native`, or the dialect it is written in.
    pub(super) dialect: &'a str,
    /// The id that the model server gave it. Calls of the client's tools never have that, because what a turn leaves behind is found
    /// by theirs, and another server's may be those of any conversation.
    pub(super) own_id: Option<String>,
    pub(super) input: CallInput,
    pub(super) passing: Passing,
}

/// The calls of one answer that have been announced and are not whole yet.
#[derive(Debug)]
pub(super) struct Announced {
    calls: Vec<Begun>,
    /// Whether calls of the server's tools are reported, too.
    server: bool,
}

impl Announced {
    pub(super) fn new(server: bool) -> Self {
        Self { calls: Vec::new(), server }
    }

    /// Whether a call that is not whole yet has been announced beside this one.
    pub(super) fn has_other(&self, place: Place) -> bool {
        self.calls.iter().any(|call| call.place != place)
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        self.calls.iter().any(|call| call.place == place)
    }

    /// A call has begun.
    pub(super) fn begin(
        &mut self,
        place: Place,
        call: Beginning<'_>,
        offer: &Offer,
        events: &mut Vec<TurnEvent>,
    ) {
        let Beginning { name, dialect, own_id, input, passing } = call;
        let (id, name, is_client) = match offer.target(name) {
            // Its pieces are those of an object, and the client gets the text in it.
            Target::Client if (input, offer.input(name)) == (CallInput::Json, CallInput::Text) => return,
            Target::Client => {
                let (id, name) = (new_call_id(), name.to_owned());
                events.push(TurnEvent::CallBegun { id: id.clone(), name: name.clone(), input, passing });
                (id, name, true)
            }
            Target::Server(_) if !self.server => return,
            Target::Server(name) => {
                let id = own_id.unwrap_or_else(new_call_id);
                let (reported, dialect) = (name.clone(), dialect.to_owned());
                events.push(ToolStatus::Begun { id: id.clone(), name: reported, dialect }.into());
                (id, name, false)
            }
        };
        self.calls.push(Begun { place, id, name, is_client, blank: true });
    }

    /// The next piece of a call's arguments.
    pub(super) fn delta(&mut self, place: Place, arguments: &str, events: &mut Vec<TurnEvent>) {
        let Some(call) = self.calls.iter_mut().find(|call| call.place == place) else { return };
        call.blank &= arguments.trim().is_empty();
        match events.last_mut() {
            _ if arguments.is_empty() => {}
            Some(
                TurnEvent::CallDelta { id, arguments: before }
                | TurnEvent::Tool(ToolStatus::Delta { id, arguments: before }),
            ) if *id == call.id => before.push_str(arguments),
            _ => {
                let (id, arguments) = (call.id.clone(), arguments.to_owned());
                events.push(match call.is_client {
                    true => TurnEvent::CallDelta { id, arguments },
                    false => ToolStatus::Delta { id, arguments }.into(),
                });
            }
        }
    }

    /// A call is whole; its id, where it was announced.
    pub(super) fn finish(&mut self, place: Place, events: &mut Vec<TurnEvent>) -> Option<String> {
        if self.calls.iter().any(|call| call.place == place && call.blank) {
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
        let begins = |event: &TurnEvent| match event {
            TurnEvent::CallBegun { id: begun, .. } | TurnEvent::Tool(ToolStatus::Begun { id: begun, .. }) => {
                *begun == id
            }
            _ => false,
        };
        if events.iter().any(begins) {
            let goes_on = |event: &TurnEvent| match event {
                TurnEvent::CallDelta { id: begun, .. }
                | TurnEvent::Tool(ToolStatus::Delta { id: begun, .. }) => *begun == id,
                _ => false,
            };
            events.retain(|event| !begins(event) && !goes_on(event));
            return false;
        }
        let (source, reason) = (source.to_owned(), reason.to_owned());
        events.push(ToolStatus::Aborted { id, name, source, reason }.into());
        true
    }

    fn take(&mut self, place: Place) -> Option<Begun> {
        let at = self.calls.iter().position(|call| call.place == place)?;
        Some(self.calls.remove(at))
    }
}

/// The announced calls of a turn of which neither has been said that they are made nor that they are not.
#[derive(Debug, Default)]
pub(super) struct Unsettled(Vec<(String, String)>);

impl Unsettled {
    /// Takes note of an event that is reported.
    pub(super) fn note(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::CallBegun { id, name, .. } | TurnEvent::Tool(ToolStatus::Begun { id, name, .. }) => {
                self.0.push((id.clone(), name.clone()));
            }
            TurnEvent::Tool(ToolStatus::Started { id, .. } | ToolStatus::Aborted { id, .. }) => {
                self.0.retain(|(begun, _)| begun != id);
            }
            TurnEvent::Calls(calls) => {
                self.0.retain(|(begun, _)| calls.iter().all(|call| call.call.id != *begun));
            }
            _ => {}
        }
    }

    /// None of them will be made.
    pub(super) fn abort(&mut self, reason: &str) -> Vec<TurnEvent> {
        let aborted =
            |(id, name)| ToolStatus::Aborted { id, name, source: String::new(), reason: reason.to_owned() };
        self.0.drain(..).map(|call| aborted(call).into()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Arc};

    use registry_core::{Caller, Permission, Registry};
    use toolrack_apis::{CallPiece, ClientTool, Piece, Request, ToolInput};
    use toolrack_dialects::ScanOptions;

    use super::*;
    use crate::{
        turn::{
            Backend, ChatSettings,
            reader::{Options, Reader},
        },
        upstream::Upstream,
    };

    fn reader(deltas: bool) -> Reader {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
        let input = ToolInput::Json { schema: None, strict: None };
        let tool = ClientTool { name: "f".into(), description: None, input, passing: Passing::none() };
        let request = Request { tools: vec![tool], ..Request::default() };
        let context = backend.registry().context(Caller::new("ada", Permission::User));
        let offer = Offer::new(&backend, &request, context).unwrap();
        let scan = ScanOptions::default().deltas(deltas);
        let options = Options {
            scan,
            stream: deltas,
            one_call: false,
            required: None,
            only_calls: false,
            quiet: false,
            max_calls: 8,
        };
        Reader::new(Arc::new(offer), options, HashSet::new())
    }

    #[test]
    fn a_piece_costs_nothing_where_deltas_are_not_asked_for() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let native = |name: Option<&str>, arguments: &str| {
            let name = name.map(str::to_owned);
            Piece::Call(CallPiece {
                index: Some(0),
                name,
                arguments: arguments.to_owned(),
                ..CallPiece::default()
            })
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
            let aborted = |event: &&TurnEvent| matches!(event, TurnEvent::Tool(ToolStatus::Aborted { .. }));
            let aborted = events.iter().filter(aborted).count();
            assert_eq!(aborted, usize::from(deltas), "what was reported is taken back: {events:?}");
        }
    }
}
