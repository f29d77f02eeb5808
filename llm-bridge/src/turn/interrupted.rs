//! Turns that are interrupted: by a server that is killed, a model server that fails, or a client that goes away. What they have done is
//! [kept](super::transcript), so that the same conversation goes on with it.

use registry_core::{ErrorKind, ToolOutcome, flow::HasRead};
use toolrack_apis::{Content, Message, Role};

use super::{
    ask::is_away,
    call::FoundCall,
    history::{self, Answered},
    offer::Offer,
    reader::Reader,
    run::{End, Run},
    transcript::{Added, Ending, Rounds, Unfinished},
};
use crate::upstream::UpstreamError;

/// The result of a call that was interrupted.
pub(crate) const INTERRUPTED: &str = "Error: the call was interrupted, so whether it took effect is not known. Find that out before you make it again.";
/// The same of a tool that only reads.
const READING_INTERRUPTED: &str = "Error: the call was interrupted. Make it again if its result is needed.";
/// The result of a call that was interrupted before its tool ran, as while a person was asked to approve it.
const NOT_MADE: &str = "Error: the call was stopped before it was made.";

impl Offer {
    /// Whether it has to be known of a call of a tool that it was interrupted, by the tool's name in the registry.
    fn matters(&self, name: &str) -> bool {
        self.has_effect(name) || self.is_resumable(name)
    }

    /// The result of a call that was interrupted while its tool ran.
    fn interrupted(&self, name: &str) -> &'static str {
        if self.matters(name) { INTERRUPTED } else { READING_INTERRUPTED }
    }

    /// The result of a call that was cancelled; `None` for any other, and where it says itself how far it had come.
    pub(super) fn cancelled(&self, outcome: &ToolOutcome) -> Option<&'static str> {
        let error = outcome.result.as_ref().err().filter(|error| error.kind() == ErrorKind::Cancelled)?;
        match outcome.duration.is_zero() {
            true => Some(NOT_MADE),
            false => (!error.was_asking()).then(|| self.interrupted(&outcome.tool_name)),
        }
    }
}

impl Run {
    /// Before calls with effects run: takes note of them, and keeps that they are made. Somebody who is killed in the middle cannot say what
    /// came of them, but that they were begun.
    ///
    /// # Errors
    /// When another server makes the calls of this turn.
    pub(super) async fn keep_before_effects(&mut self) -> Result<(), End> {
        if let Some(messages) = self.under_way.clone() {
            if !self.place.may_make_effects().await {
                return Err(self.is_made_elsewhere());
            }
            self.keep_rounds(messages).await;
            self.rounds_are_kept().await;
        }
        Ok(())
    }

    /// Ends the turn, as the same one runs on another server; what is kept of it is that server's.
    pub(super) fn is_made_elsewhere(&mut self) -> End {
        self.place.give_up();
        self.under_way = None;
        End::Upstream(UpstreamError::AnsweredElsewhere)
    }

    /// The server's calls of an answer as the model is told of them if they are interrupted; `None` where none has an effect or can go on.
    pub(super) fn as_interrupted(&self, reader: &Reader) -> Option<Vec<Message>> {
        let matters = |call: &FoundCall| call.server_tool().is_some_and(|name| self.offer.matters(name));
        if !reader.calls.iter().any(matters) {
            return None;
        }
        let interrupted = |call: &FoundCall| {
            let text = self.offer.interrupted(call.server_tool()?).to_owned();
            Some(Answered { text, pictures: Vec::new(), is_error: true })
        };
        let mut messages = history::messages_of(reader, reader.calls.iter().map(interrupted).collect());
        let clients =
            reader.calls.iter().filter(|call| call.server_tool().is_none()).map(|call| call.id.as_str());
        let clients: Vec<&str> = clients.collect();
        for message in &mut messages {
            message.parts.retain(
                |part| !matches!(&part.content, Content::Call(call) if clients.contains(&call.id.as_str())),
            );
            message.written.take_if(|_| !clients.is_empty());
        }
        Some(messages)
    }

    /// Keeps what the turn has done, and these calls that it makes now, while it goes on; one after the other.
    pub(super) async fn keep_rounds(&mut self, under_way: Vec<Message>) {
        let Some(key) = self.place.rounds_key() else { return };
        self.rounds_are_kept().await;
        let mut messages = self.restored_behind(self.place.trailing);
        messages.extend(under_way);
        let rounds = Rounds {
            messages,
            found: self.offer.found.names(),
            read: self.read.clone(),
            texts: self.shown.texts().into_iter().map(str::to_owned).collect(),
            results: self.offer.take_left_out(),
        };
        self.place.has_rounds = true;
        let (backend, user) = (self.backend.clone(), self.offer.context.caller().user.clone());
        self.keeping = Some(self.backend.spawn(async move {
            // A user who was removed meanwhile has no conversations.
            let owner = (backend.registry().tenant(), user.as_str());
            backend.has_user().await && backend.transcripts.keep_rounds(owner, key, rounds).await
        }));
    }

    /// Waits until the rounds before are kept. Where the store fails, those to come are not, as each would wait for it.
    pub(super) async fn rounds_are_kept(&mut self) {
        if let Some(keeping) = self.keeping.take()
            && !keeping.await.unwrap_or_default()
        {
            self.place.leave();
        }
    }

    /// Adds the calls that the turn has ended before, with what has come of them by now; false where there are none.
    pub(super) async fn add_under_way(&mut self) -> bool {
        let Some(mut messages) = self.under_way.take() else { return false };
        let mut read = HasRead::default();
        for reported in self.outcomes.take().into_values() {
            read.note(reported.reads, &reported.name);
            history::replace_result(&mut messages, &reported.told.id, reported.answered);
        }
        self.has_read(&read);
        self.backend.fit_pictures(&mut messages).await;
        self.add(messages);
        true
    }

    /// Counts the rounds that the turn goes on with towards its limits, but for one that it has in any case.
    pub(super) fn count_resumed(&mut self) {
        let resumed = self.added_behind(self.place.resumed.messages);
        let rounds = resumed.iter().filter(|message| message.calls().next().is_some()).count();
        let calls: Vec<_> = resumed
            .iter()
            .flat_map(Message::calls)
            .filter_map(|call| {
                let name = self.offer.server_tool(&call.name)?.name().to_owned();
                Some((name, serde_json::from_str(&call.arguments).ok()?))
            })
            .collect();
        if rounds > 0 {
            tracing::info!(rounds, "a turn that was interrupted goes on");
        }
        self.meter.resume(u32::try_from(rounds).unwrap_or(u32::MAX), &calls);
    }

    /// Keeps what the tools of a turn gave that has broken off, or that somebody has stopped, for a client that goes on from what it has of
    /// the answer, or asks again.
    pub(super) async fn keep_broken(&mut self, error: Option<&UpstreamError>) {
        self.rounds_are_kept().await;
        let has_run = self.has_run_tools || self.under_way.is_some();
        let resumed = self.place.resumed;
        // What makes the model server fail again and again is not gone on with for ever.
        let has_failed = error.is_some_and(|error| !is_away(error));
        let failed = if has_run { 0 } else { resumed.failed } + u32::from(has_failed);
        if !Box::pin(self.add_under_way()).await {
            let said = self.shown.unsettled().trim_end();
            if !said.trim_start().is_empty() {
                self.request.messages.push(Message::text(Role::Assistant, said));
            }
        }
        self.restore_results();
        let has_more = has_run || resumed.messages > 0 && has_failed;
        if !has_more || self.request.conversation.begins_anew || !self.backend.has_user().await {
            return;
        }
        let messages = self.added_behind(self.place.trailing);
        let (tenant, found, texts) =
            (self.backend.registry().tenant(), self.offer.found.names(), self.shown.texts());
        let owner = (tenant, self.offer.context.caller().user.as_str());
        let unfinished = Some(Unfinished::now(false, failed));
        let added = Added { messages, found: &found, read: &self.read, texts: &texts, unfinished };
        self.backend.transcripts.keep_results(owner, self.offer.take_left_out()).await;
        self.backend.transcripts.keep(owner, &self.place, Some(added), Ending::Broken).await;
    }
}
