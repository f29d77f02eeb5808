//! What the model wrote in a turn, with calls and results that the client did not see, is kept, and put back when the conversation goes
//! on: then the next prompt begins with the last one, to the byte, and the model knows what it has found out.
//!
//! A transcript is kept in the store of conversations, by tenant and user, under a hash of the conversation that the client can see; that of a
//! turn that ended with calls of the client's tools also under the id of one of them.

use std::{sync::Arc, time::Duration};

use registry_core::store::{
    ConversationLimits, Conversations, MemoryStore, StoreError, StoredTranscript, TranscriptLimits,
};
use toolrack_apis::{Call, Content, Message, Part};

use super::{
    pictures,
    replace::{Added, read_all, replace},
    visible::{Fingerprint, VisibleAnswer, VisibleConversation, Words, key_of_calls},
};

/// A larger conversation is hashed beside the runtime, in bytes.
const SMALL: usize = 256 * 1024;
/// So many answers of a conversation are looked for, the last ones.
const ANSWERS: usize = 2000;
/// More than a transcript has beside its messages, in bytes.
const OTHER_BYTES: u64 = 2048;
/// How long a turn waits for the store before it goes on without it.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where transcripts are kept.
#[derive(Debug, Clone)]
pub(super) struct Transcripts {
    conversations: Conversations,
    /// Whether those of turns are kept that have ended with an answer.
    are_answers_kept: bool,
}

impl Default for Transcripts {
    fn default() -> Self {
        Self { conversations: in_memory(), are_answers_kept: true }
    }
}

/// For an hour, in this process.
fn in_memory() -> Conversations {
    let retention = Duration::from_secs(3600);
    let transcripts = TranscriptLimits { max_total_bytes: 64 << 20, ..TranscriptLimits::DEFAULT };
    let limits = ConversationLimits { retention, transcripts, ..ConversationLimits::default() };
    Conversations::new(Arc::new(MemoryStore::default()), limits)
}

impl Transcripts {
    /// In the store of conversations. Where that keeps none, only turns are kept that wait for the client's tools, and in memory: without what
    /// the server has done in them they could not go on.
    pub(super) fn new(conversations: Conversations) -> Self {
        match conversations.keeps_transcripts() {
            true => Self { conversations, are_answers_kept: true },
            false => Self { conversations: in_memory(), are_answers_kept: false },
        }
    }

    /// Puts back what is kept of a conversation, of which `earlier` messages are whole already. Each transcript is put back once, so that
    /// a short request cannot become a long one.
    pub(super) async fn put_back(
        &self,
        owner: (&str, &str),
        model: &str,
        messages: &mut Vec<Message>,
        earlier: usize,
    ) -> Place {
        let size: usize = messages.iter().map(Message::size).sum();
        let shared = Arc::new(std::mem::take(messages));
        let (read, model) = (Arc::clone(&shared), model.to_owned());
        let visible = beside(size, move || VisibleConversation::of(&model, &read)).await;
        *messages = Arc::unwrap_or_clone(shared);
        let Some(VisibleConversation { mut answers, before, begun, is_unanswered }) = visible else {
            return Place::default();
        };
        let trailing = match answers.last() {
            Some(last) if last.messages.end == messages.len() => messages.len() - last.messages.start,
            _ => 0,
        };
        let before = Some(before).filter(|_| !is_unanswered);
        let mut place = Place { before, begun, trailing, found: Vec::new() };
        answers.retain(|answer| answer.messages.start >= earlier);
        answers.drain(..answers.len().saturating_sub(ANSWERS));
        let found = self.find(owner, &answers).await;
        if !found.is_empty() {
            let size = found.iter().map(|found| found.messages.len()).sum();
            if let Some(found) = beside(size, move || read_all(found)).await {
                let had = messages.len();
                let ends = answers.last().is_some_and(|last| last.messages.end == had);
                let replaced = replace(messages, &answers, &found);
                place.trailing = replaced.last.filter(|_| ends).unwrap_or(place.trailing);
                place.found = replaced.found;
                tracing::debug!(messages = had, whole = messages.len(), "transcripts_put_back");
            }
        }
        place
    }

    async fn find(&self, (tenant, user): (&str, &str), answers: &[VisibleAnswer]) -> Vec<StoredTranscript> {
        let calls = answers.iter().filter_map(|answer| answer.call.as_ref().map(|(_, key)| key.clone()));
        let keys: Vec<String> = answers.iter().map(|answer| answer.key.clone()).chain(calls).collect();
        if keys.is_empty() {
            return Vec::new();
        }
        let found = in_time(self.conversations.transcripts((tenant, user), &keys)).await;
        found.unwrap_or_else(|cause| {
            tracing::warn!(cause, "transcripts_not_read");
            Vec::new()
        })
    }

    /// A transcript as it is kept, with as many of the last pictures as there is room for.
    fn text_of(&self, added: Added<'_>) -> serde_json::Result<String> {
        let limits = self.conversations.limits().transcripts;
        let most = limits.max_bytes.min(limits.max_user_bytes).saturating_sub(OTHER_BYTES);
        pictures::write_within(most, added.messages, |messages| {
            serde_json::to_string(&Added { messages, ..added })
        })
    }

    /// Keeps what a turn has added to a conversation; `None` where there is nothing to be put back, though another turn may have had something.
    pub(super) async fn keep(
        &self,
        (tenant, user): (&str, &str),
        place: &Place,
        added: Option<Added<'_>>,
        ending: Ending<'_>,
    ) {
        let Some(before) = place.before else { return };
        if matches!(ending, Ending::Answer(_)) && !self.are_answers_kept {
            return;
        }
        let (key, other) = ending.keys(before);
        let kept = match added {
            None => {
                let keys: Vec<String> = [key].into_iter().chain(other).collect();
                in_time(self.conversations.delete_transcripts((tenant, user), &keys)).await
            }
            Some(added) => match self.text_of(added) {
                Ok(text) => {
                    let keys = (key, other);
                    in_time(self.conversations.keep_transcript((tenant, user), keys, text.into())).await
                }
                Err(error) => Err(error.to_string()),
            },
        };
        if let Err(cause) = kept {
            tracing::warn!(cause, "transcript_not_kept");
        }
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("the store did not answer in time".to_owned()),
    }
}

/// Does something with so many bytes, beside the runtime where they are many; `None` where it is going down.
async fn beside<T: Send + 'static>(size: usize, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match size <= SMALL {
        true => Some(work()),
        false => tokio::task::spawn_blocking(work).await.ok(),
    }
}

/// Where a turn stands in its conversation.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// All before the answer; `None` where it cannot be kept.
    before: Option<Fingerprint>,
    /// The text that the client has begun the answer with.
    begun: String,
    /// How many messages that is, the last ones of the request.
    pub(super) trailing: usize,
    /// The deferred tools that the conversation has found, as its transcripts say.
    pub(super) found: Vec<String>,
}

impl Place {
    /// What the client sees of the answer so far.
    pub(super) fn shown(&self) -> Shown {
        Shown { all: Words::of(&self.begun), said: None }
    }
}

/// The text of a turn that the client is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    all: Words,
    /// What of it the model said: some clients show the messages of results elsewhere. `None` if that is all.
    said: Option<Words>,
}

impl Shown {
    /// The next piece of what the model says.
    pub(super) fn say(&mut self, text: &str) {
        self.all.push(text);
        if let Some(said) = &mut self.said {
            said.push(text);
        }
    }

    /// The message of a result.
    pub(super) fn show(&mut self, text: &str) {
        self.said.get_or_insert_with(|| self.all.clone());
        self.all.push(text);
    }
}

/// What the client sees at the end of a turn.
pub(super) enum Ending<'a> {
    Answer(&'a Shown),
    /// Calls of its tools.
    Calls(&'a [&'a Call]),
}

impl Ending<'_> {
    /// Whether these messages are all that the client sees, behind what it has begun itself.
    pub(super) fn shows(&self, messages: &[Message], place: &Place) -> bool {
        let is_seen = |part: &Part| match (&part.content, self) {
            (Content::Text(text), Self::Answer(_)) => text.trim() == text,
            (Content::Text(_), Self::Calls(_)) => true,
            (Content::Call(call), Self::Calls(calls)) => calls.iter().any(|client| client.id == call.id),
            _ => false,
        };
        match messages {
            [] => true,
            [message] => place.trailing == 0 && message.parts.iter().all(is_seen),
            _ => false,
        }
    }

    fn keys(&self, before: Fingerprint) -> (String, Option<String>) {
        match self {
            Self::Answer(Shown { all, said }) => {
                let key = |words: &Words| before.and_text(words.clone()).key();
                (key(all), said.as_ref().map(key))
            }
            Self::Calls(calls) => {
                let key = before.and_calls(calls.iter().copied()).key();
                (key, key_of_calls(calls.iter().copied()).map(|(_, key)| key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use toolrack_apis::{Media, MediaKind, MediaSource, Reasoning, Role, ToolResult};

    use super::*;

    fn calls(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| Content::Call(Call::new(*id, "f", "{}")).into());
        Message::new(Role::Assistant, calls.collect())
    }

    fn result(id: &str) -> Message {
        Message::result(ToolResult { call_id: id.into(), ..ToolResult::default() })
    }

    fn user(text: &str) -> Message {
        Message::text(Role::User, text)
    }

    fn of(messages: &[Message]) -> Added<'_> {
        Added { messages, found: &[] }
    }

    const ADA: (&str, &str) = ("default", "ada");

    /// Keeps what a turn adds that ends with these calls of the client.
    async fn keep(transcripts: &Transcripts, sent: &[Message], client: &[&str], added: &[Message]) {
        let place = transcripts.put_back(ADA, "m", &mut sent.to_vec(), 0).await;
        let client = calls(client);
        let client: Vec<&Call> = client.calls().collect();
        let ending = Ending::Calls(&client);
        let added = (!ending.shows(added, &place)).then_some(of(added));
        transcripts.keep(ADA, &place, added, ending).await;
    }

    async fn whole(transcripts: &Transcripts, owner: (&str, &str), messages: &[Message]) -> Vec<Message> {
        let mut messages = messages.to_vec();
        transcripts.put_back(owner, "m", &mut messages, 0).await;
        messages
    }

    #[tokio::test]
    async fn b15_a_turn_is_found_by_the_id_of_its_call_and_put_back_for_its_user_alone() {
        let transcripts = Transcripts::default();
        let added = [calls(&["s", "c"]), result("s")];
        keep(&transcripts, &[], &["c"], &added).await;
        let sent = [user("hi"), calls(&["c"]), result("c")];
        let expected = [user("hi"), added[0].clone(), added[1].clone(), result("c")];
        assert_eq!(whole(&transcripts, ADA, &sent).await, expected);
        for owner in [("default", "bob"), ("other", "ada")] {
            assert_eq!(whole(&transcripts, owner, &sent).await, sent);
        }
        let other = [user("hi"), calls(&["x", "y"])];
        assert_eq!(whole(&transcripts, ADA, &other).await, other);
    }

    #[tokio::test]
    async fn a2_what_is_kept_is_put_back_once() {
        let transcripts = Transcripts::default();
        let added = [calls(&["s", "c", "d"]), result("s")];
        keep(&transcripts, &[], &["c", "d"], &added).await;
        let again = [calls(&["c"]), result("c"), calls(&["c"]), result("c")];
        let expected = [added[0].clone(), added[1].clone(), result("c"), calls(&["c"]), result("c")];
        assert_eq!(whole(&transcripts, ADA, &again).await, expected);
    }

    #[tokio::test]
    async fn b13_a_turn_is_found_without_ids_by_what_the_client_sees() {
        let transcripts = Transcripts::default();
        let sent = [user("hi")];
        let added = [calls(&["s", "c"]), result("s")];
        keep(&transcripts, &sent, &["c"], &added).await;
        let went_on = |word: &str, id: &str| [user(word), calls(&[id]), result(id)];
        // The result belongs to the call as it is now.
        let expected = [sent[0].clone(), added[0].clone(), added[1].clone(), result("c")];
        assert_eq!(whole(&transcripts, ADA, &went_on("hi", "call00000")).await, expected);
        assert_eq!(whole(&transcripts, ADA, &went_on("ho", "call00000")).await, went_on("ho", "call00000"));
        // The same question again, without anything that the client does not see.
        keep(&transcripts, &sent, &["d00000000"], &[calls(&["d00000000"])]).await;
        assert_eq!(whole(&transcripts, ADA, &went_on("hi", "call00000")).await, went_on("hi", "call00000"));
        // An id of this server leads to its own turn only.
        keep(&transcripts, &sent, &["e00000000"], &added).await;
        assert_eq!(whole(&transcripts, ADA, &went_on("hi", "d00000000")).await, went_on("hi", "d00000000"));
    }

    #[tokio::test]
    async fn g8_an_answer_that_the_client_has_begun_is_put_back_whole() {
        let transcripts = Transcripts::default();
        let begun = [user("Count."), Message::text(Role::Assistant, "One, ")];
        let place = transcripts.put_back(ADA, "m", &mut begun.to_vec(), 0).await;
        assert_eq!(place.trailing, 1);
        let mut shown = place.shown();
        shown.say("two.");
        let thought = Content::Reasoning(Reasoning { text: "Hm.".into(), seal: None });
        let said = Content::Text("two.".into());
        let added = Message::new(Role::Assistant, vec![thought.into(), said.into()]);
        let messages = [begun[1].clone(), added.clone()];
        transcripts.keep(ADA, &place, Some(of(&messages)), Ending::Answer(&shown)).await;
        let sent = [user("Count."), Message::text(Role::Assistant, "One, two."), user("Go on.")];
        let expected = [user("Count."), begun[1].clone(), added, user("Go on.")];
        assert_eq!(whole(&transcripts, ADA, &sent).await, expected);
    }

    #[tokio::test]
    async fn g12_pictures_are_kept_as_far_as_there_is_room() {
        let kept = async |max_bytes: u64, sizes: &[usize]| {
            let transcripts = TranscriptLimits { max_bytes, ..TranscriptLimits::DEFAULT };
            let limits = ConversationLimits { transcripts, ..ConversationLimits::default() };
            let store = Arc::new(MemoryStore::default());
            let transcripts = Transcripts::new(Conversations::new(store, limits));
            let ids: Vec<String> = (0..sizes.len()).map(|at| format!("s{at}")).collect();
            let mut added = vec![calls(&ids.iter().map(String::as_str).chain(["c"]).collect::<Vec<_>>())];
            for (id, size) in ids.iter().zip(sizes) {
                let media = Media::new(MediaKind::Image, MediaSource::Data("A".repeat(*size)));
                let parts = vec![Content::Media(media).into()];
                added.push(Message::result(ToolResult {
                    call_id: id.clone(),
                    parts,
                    ..ToolResult::default()
                }));
            }
            keep(&transcripts, &[], &["c"], &added).await;
            let back = whole(&transcripts, ADA, &[user("hi"), calls(&["c"]), result("c")]).await;
            assert_eq!(back.len(), added.len() + 2, "it is kept in any case");
            (pictures::count(&back), back[1..=added.len()] == added)
        };
        assert_eq!(kept(60_000, &[9000, 9000, 9000, 9000]).await, (4, true));
        assert_eq!(kept(25_000, &[9000, 9000, 9000, 9000]).await, (2, false));
        assert_eq!(kept(5000, &[9000, 9000]).await, (0, false));
    }

    #[tokio::test]
    async fn b15_a_long_conversation_is_asked_for_at_once() {
        let transcripts = Transcripts::default();
        let mut messages = Vec::new();
        for number in 0..2300 {
            messages.push(user(&format!("{number}?")));
            if number % 1500 == 0 {
                let place = transcripts.put_back(ADA, "m", &mut messages.clone(), 0).await;
                let mut shown = place.shown();
                shown.say("Yes.");
                let added = [calls(&["s"]), result("s"), Message::text(Role::Assistant, "Yes.")];
                transcripts.keep(ADA, &place, Some(of(&added)), Ending::Answer(&shown)).await;
            }
            messages.push(Message::text(Role::Assistant, "Yes."));
        }
        messages.push(user("Sure?"));
        // The answers are looked for from the end, so many of them.
        assert_eq!(whole(&transcripts, ADA, &messages).await.len(), messages.len() + 2);
    }
}
