//! What follows an answer of the model that has calls: they are made, and stand in the conversation with their results. Also of one whose
//! calls were interrupted, in a turn that goes on behind it.

use registry_core::Origin;
use toolrack_apis::{Call, ClientCall, Content, FinishReason, Message, Passing, Role, TurnEvent};

use super::{
    call::FoundCall,
    history::{self, Answered},
    interrupted::INTERRUPTED,
    offer::{Offer, Target},
    reader::Reader,
    run::{End, Run},
};

/// An answer whose calls are made.
pub(super) enum Called {
    /// One that was just read.
    Read(Box<Reader>),
    /// One that a turn before this one has read.
    Interrupted(Interrupted),
}

/// The last answer of a turn that was interrupted, with calls that can go on.
pub(super) struct Interrupted {
    /// The answer and its results, as they are without these calls.
    messages: Vec<Message>,
    calls: Vec<FoundCall>,
}

impl Called {
    fn calls(&self) -> &[FoundCall] {
        match self {
            Self::Read(reader) => &reader.calls,
            Self::Interrupted(interrupted) => &interrupted.calls,
        }
    }

    /// The answer where its calls are not made.
    fn into_uncalled(self) -> Vec<Message> {
        match self {
            Self::Read(mut reader) => {
                reader.calls.clear();
                history::messages_of(&reader, Vec::new())
            }
            Self::Interrupted(interrupted) => interrupted.messages,
        }
    }

    /// The answer and the results; `None` for a call that the client runs.
    fn answered(&mut self, answers: Vec<Option<Answered>>) -> Vec<Message> {
        match self {
            Self::Read(reader) => history::messages_of(reader, answers),
            Self::Interrupted(Interrupted { messages, calls }) => {
                for (call, answer) in calls.iter().zip(answers) {
                    if let Some(answer) = answer {
                        replace(messages, history::result_of(call, answer));
                    }
                }
                std::mem::take(messages)
            }
        }
    }

    fn into_calls(self) -> Vec<FoundCall> {
        match self {
            Self::Read(reader) => reader.calls,
            Self::Interrupted(interrupted) => interrupted.calls,
        }
    }
}

/// Puts a result in the place of the one that its call had.
fn replace(messages: &mut [Message], result: Message) {
    let id = |message: &Message| message.tool_result().map(|result| result.call_id.clone());
    let new = id(&result);
    if let Some(old) = messages.iter_mut().find(|message| message.role == Role::Tool && id(message) == new) {
        *old = result;
    }
}

/// Whether a message is the result of a call of that id that was interrupted.
fn says_interrupted(message: &Message, id: &str) -> bool {
    let is_so = |content: &Content| matches!(content, Content::Text(text) if text == INTERRUPTED);
    message.tool_result().is_some_and(|result| {
        result.call_id == id && result.is_error && result.parts.iter().any(|part| is_so(&part.content))
    })
}

impl Offer {
    /// A call of an earlier turn, where its tool can go on with it.
    fn again(&self, call: &Call) -> Option<FoundCall> {
        let tool = self.server_tool(&call.name).filter(|tool| tool.policy().resumable)?;
        Some(FoundCall {
            id: call.id.clone(),
            announced: false,
            wire_name: call.name.clone(),
            target: Target::Server(tool.name().to_owned()),
            arguments: call.arguments.clone(),
            input: call.input,
            origin: Origin::Native,
            source: None,
            is_quoted: false,
            raw_argument: None,
            is_interrupted: true,
            passing: Passing::none(),
        })
    }
}

impl Run {
    /// Takes the last answer out of the conversation that the turn goes on with, where calls of it were interrupted that can go on.
    pub(super) fn take_interrupted(&mut self) -> Option<Interrupted> {
        let resumed = self.added_behind(self.place.resumed.messages);
        let at = resumed.iter().rposition(|message| message.calls().next().is_some())?;
        let (answer, results) = resumed.get(at..)?.split_first()?;
        let is_interrupted = |call: &&Call| results.iter().any(|result| says_interrupted(result, &call.id));
        let calls = answer.calls().filter(is_interrupted).filter_map(|call| self.offer.again(call));
        let calls: Vec<FoundCall> = calls.collect();
        if calls.is_empty() {
            return None;
        }
        let count = resumed.len() - at;
        self.sent -= count;
        self.place.takes_back(count);
        Some(Interrupted { messages: self.request.messages.split_off(self.sent), calls })
    }

    /// Goes on with calls that were interrupted; gives how the turn ends, where it does.
    pub(super) async fn go_on(&mut self, interrupted: Interrupted) -> Option<End> {
        if let Err(reached) = self.meter.begin_round() {
            return Some(End::Limit(reached));
        }
        self.under_way = Some(interrupted.messages.clone());
        let started = interrupted.calls.iter().filter_map(FoundCall::started);
        let mut started: Vec<TurnEvent> = started.map(TurnEvent::Tool).collect();
        match self.send_all(&mut started).await {
            Ok(()) => self.make_calls(Called::Interrupted(interrupted)).await,
            Err(end) => Some(end),
        }
    }

    /// Makes the calls of an answer, and adds it to the conversation with their results; gives how the turn ends, where it does.
    pub(super) async fn make_calls(&mut self, mut called: Called) -> Option<End> {
        if let Err(end) = Box::pin(self.keep_before_effects()).await {
            return Some(end);
        }
        let mut results = match Box::pin(self.run_calls(called.calls())).await {
            Ok(results) => results,
            Err(end) => {
                if matches!(end, End::Limit(_)) {
                    self.under_way.get_or_insert_with(|| called.into_uncalled());
                }
                return Some(end);
            }
        };
        self.under_way = None;
        let read = std::mem::take(&mut results.read);
        self.has_read(&read);
        let answered = self.answered_by_tools(called.calls(), &mut results);
        let before = self.request.messages.len();
        let reached = results.reached;
        self.add(called.answered(results.answers));
        Box::pin(self.fit_pictures(before)).await;
        if let Some(reached) = reached {
            return Some(End::Limit(reached));
        }
        if let Some(end) = self.hand_over(called.into_calls()).await {
            return Some(end);
        }
        if let Some(text) = answered {
            self.request.messages.push(Message::text(Role::Assistant, text));
            Box::pin(self.keep(None)).await;
            return Some(End::Answered { reason: FinishReason::Stop });
        }
        Box::pin(self.keep_rounds(Vec::new())).await;
        None
    }

    /// Ends the turn where the client has to run something.
    async fn hand_over(&mut self, calls: Vec<FoundCall>) -> Option<End> {
        let is_client = |call: &FoundCall| call.target == Target::Client;
        let client: Vec<ClientCall> =
            calls.into_iter().filter(is_client).map(FoundCall::into_client_call).collect();
        if client.is_empty() {
            return None;
        }
        let calls: Vec<&Call> = client.iter().map(|call| &call.call).collect();
        Box::pin(self.keep(Some(&calls))).await;
        Some(match self.send_all(&mut vec![TurnEvent::Calls(client)]).await {
            Ok(()) => End::Answered { reason: FinishReason::ToolCalls },
            Err(end) => end,
        })
    }
}
