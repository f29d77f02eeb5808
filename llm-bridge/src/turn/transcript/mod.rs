//! What the model wrote in a turn, with calls and results that the client did not see, is kept, and put back when the conversation goes
//! on: then the next prompt begins with the last one, to the byte, and the model knows what it has found out.
//!
//! A transcript is kept in the store of conversations, by tenant and user, under a hash of the conversation that the client can see; that of a
//! turn that ended with calls of the client's tools also under the id of one of them. That of an answer that broke off, or that somebody has
//! stopped, is kept under what was before it, as nobody knows how much of it the client has; so is that of a turn that [still
//! runs](unfinished). The whole texts of results that were shortened
//! are kept beside it, each under its id.

mod effects;
mod ending;
mod fingerprint;
mod flow;
mod notice;
mod replace;
mod results;
#[cfg(test)]
mod tests;
mod unfinished;
mod visible;

use std::{sync::Arc, time::Duration};

use futures_util::join;
use registry_core::store::{
    ConversationLimits, Conversations, MemoryStore, StateStore, StoreError, StoredTranscript,
    TranscriptLimits,
};
use tokio_util::sync::CancellationToken;
use toolrack_apis::{EarlierAnswer, Message};

use effects::Effects;
pub(super) use ending::{Ending, Place, Shown};
pub(super) use fingerprint::key_of_chat;
use flow::last_flow_keys;
pub(crate) use notice::{approval_notice, question_notice};
pub(super) use replace::{Added, Resumed};
use replace::{Replaced, read_all, replace};
use unfinished::{Claim, Turns};
pub(super) use unfinished::{Rounds, Unfinished};
use visible::{VisibleAnswer, VisibleConversation};

use super::pictures;
use crate::beside::{SMALL, beside};

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
    /// Where is kept what conversations have read.
    marks: Conversations,
    /// Whether those of turns are kept that have ended with an answer.
    are_answers_kept: bool,
    /// The turns that run.
    turns: Turns,
}

impl Default for Transcripts {
    fn default() -> Self {
        Self { are_answers_kept: true, ..Self::in_memory() }
    }
}

/// That a turn may go on with one that was cut off at its place, and makes calls there.
pub(super) struct Resuming {
    /// The turn's token.
    pub(super) turn: CancellationToken,
    /// Where servers note their turns.
    pub(super) state: Arc<dyn StateStore>,
}

/// How much is kept in memory of the turns of a user that wait for the client's tools, and of all users.
const MAX_WAITING_OF_USER: u64 = 8 << 20;
const MAX_WAITING: u64 = 64 << 20;
/// How often is kept in memory what a conversation of a user has read: of each user for themselves, so that nobody's calls are asked about
/// less for what others do. Each is shorter than 4 KiB.
const MAX_MARKS: u64 = 2000;
const IN_MEMORY: TranscriptLimits = TranscriptLimits {
    max_user_bytes: MAX_WAITING_OF_USER,
    max_total_bytes: MAX_WAITING,
    ..TranscriptLimits::DEFAULT
};
const MARKS_IN_MEMORY: TranscriptLimits = TranscriptLimits {
    max_user_transcripts: MAX_MARKS,
    max_user_bytes: MAX_MARKS * 4096,
    max_total_bytes: u64::MAX,
    ..TranscriptLimits::DEFAULT
};

/// For an hour, in this process.
fn kept_in_memory(transcripts: TranscriptLimits) -> Conversations {
    let retention = Duration::from_secs(3600);
    let limits = ConversationLimits { retention, transcripts, ..ConversationLimits::default() };
    Conversations::new(Arc::new(MemoryStore::default()), limits)
}

impl Transcripts {
    fn in_memory() -> Self {
        let (conversations, marks) = (kept_in_memory(IN_MEMORY), kept_in_memory(MARKS_IN_MEMORY));
        Self { conversations, marks, are_answers_kept: false, turns: Turns::default() }
    }

    /// In the store of conversations. Where that keeps none, only turns are kept that wait for the client's tools, and in memory: without what
    /// the server has done in them they could not go on.
    pub(super) fn new(conversations: Conversations) -> Self {
        if !conversations.keeps_transcripts() {
            return Self::in_memory();
        }
        let marks = conversations.clone();
        Self { conversations, marks, are_answers_kept: true, turns: Turns::default() }
    }

    /// Puts back what is kept of a conversation, of which `whole` are answers that the server has kept. Each transcript is put back once, so that
    /// a short request cannot become a long one. With `resuming` the turn goes on with the rounds of one that was cut off.
    pub(super) async fn put_back(
        &self,
        owner: (&str, &str),
        model: &str,
        messages: &mut Vec<Message>,
        whole: Vec<EarlierAnswer>,
        resuming: Option<Resuming>,
    ) -> Place {
        let size: usize = messages.iter().map(Message::size).sum();
        let shared = Arc::new(std::mem::take(messages));
        let (read, model) = (Arc::clone(&shared), model.to_owned());
        let visible = beside(size, move || VisibleConversation::of(&model, &read, &whole)).await;
        *messages = Arc::unwrap_or_clone(shared);
        let Some(VisibleConversation { mut answers, before, begun, is_unanswered, standing }) = visible
        else {
            return Place::default();
        };
        let ends = answers.last().is_some_and(|last| last.messages.end == messages.len() && !last.is_whole);
        let trailing = match answers.last() {
            Some(last) if ends => messages.len() - last.messages.start,
            _ => 0,
        };
        let before = Some(before).filter(|_| !is_unanswered);
        let flow_keys = last_flow_keys(&answers);
        let mut place = Place { before, begun, trailing, standing: Some(standing), ..Place::default() };
        let rounds = match (before.map(|before| before.and_beginning().key()), resuming) {
            (Some(key), Some(Resuming { turn, state })) => {
                place.claim = self.claim(owner, &key, turn).await;
                if self.are_answers_kept {
                    place.effects = Effects::at(state, owner, &key).await;
                }
                place.claim.as_ref().filter(|_| !ends).map(|_| key)
            }
            _ => None,
        };
        answers.retain(|answer| !answer.is_whole);
        answers.drain(..answers.len().saturating_sub(ANSWERS));
        let keys = answers.iter().flat_map(VisibleAnswer::keys).chain(&rounds).cloned().collect();
        let (found, read) = join!(self.find(owner, keys), self.read_before(owner, &flow_keys));
        place.read = read;
        let Some(found) = found else {
            // Nor will it keep the rounds, for which each of them would wait.
            place.leave();
            return place;
        };
        if found.is_empty() {
            return place;
        }
        let had = messages.len();
        let size = size + found.iter().map(|found| found.messages.len()).sum::<usize>();
        let mut whole = std::mem::take(messages);
        let replacing = beside(size, move || {
            let found = read_all(found);
            let mut replaced = replace(&mut whole, &answers, &found);
            let rounds = rounds.and_then(|key| found.get(&key));
            let resumed = rounds.map(|rounds| replaced.resume(&mut whole, rounds).unwrap_or_default());
            (whole, replaced, resumed)
        });
        // Where it ends, the server is being stopped.
        let Some((whole, replaced, resumed)) = replacing.await else { return place };
        *messages = whole;
        place.has_rounds = resumed.is_some();
        place.resumed = resumed.unwrap_or_default();
        if let Some(effects) = place.effects.as_mut().filter(|_| place.resumed.messages > 0) {
            effects.go_on();
        }
        let Replaced { last, found, read } = replaced;
        place.read.add(&read);
        place.trailing = last.filter(|_| ends || place.resumed.messages > 0).unwrap_or(place.trailing);
        place.found = found;
        let resumed = place.resumed.messages;
        tracing::debug!(messages = had, whole = messages.len(), resumed, "transcripts_put_back");
        place
    }

    /// The transcripts of these keys; `None` where the store does not say.
    async fn find(&self, owner: (&str, &str), keys: Vec<String>) -> Option<Vec<StoredTranscript>> {
        if keys.is_empty() {
            return Some(Vec::new());
        }
        let found = in_time(self.conversations.transcripts(owner, &keys)).await;
        found.inspect_err(|cause| tracing::warn!(cause, "transcripts_not_read")).ok()
    }

    /// A transcript as it is kept, with as many of the last pictures as there is room for.
    fn text_of(&self, added: Added<'_>) -> serde_json::Result<String> {
        let limits = self.conversations.limits().transcripts;
        let most = limits.max_bytes.min(limits.max_user_bytes).saturating_sub(OTHER_BYTES);
        pictures::write_within(most, added.messages, |messages| {
            serde_json::to_string(&Added { messages, ..added })
        })
    }

    /// The same; of a long conversation written beside the runtime, which takes longer than to copy it.
    async fn written(&self, added: Added<'_>) -> Result<String, String> {
        let size = added.messages.iter().map(Message::size).sum();
        if size <= SMALL {
            return self.text_of(added).map_err(|error| error.to_string());
        }
        let (transcripts, unfinished) = (self.clone(), added.unfinished);
        let (messages, found, read) = (added.messages.to_vec(), added.found.to_vec(), added.read.clone());
        let texts: Vec<String> = added.texts.iter().map(|text| (*text).to_owned()).collect();
        let write = move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let added = Added { messages: &messages, found: &found, read: &read, texts: &texts, unfinished };
            transcripts.text_of(added)
        };
        match beside(size, write).await {
            Some(written) => written.map_err(|error| error.to_string()),
            None => Err("the server is being stopped".to_owned()),
        }
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
        if matches!(ending, Ending::Answer(_) | Ending::Broken) && !self.are_answers_kept {
            return;
        }
        let (key, other) = ending.keys(before);
        let has_rounds = place.has_rounds && added.is_some() && !matches!(ending, Ending::Broken);
        let kept = match added {
            None => {
                let keys: Vec<String> = [key].into_iter().chain(other).chain(place.rounds_key()).collect();
                in_time(self.conversations.delete_transcripts((tenant, user), &keys)).await
            }
            Some(added) => match self.written(added).await {
                Ok(text) => {
                    let keys = (key, other);
                    in_time(self.conversations.keep_transcript((tenant, user), keys, text.into())).await
                }
                Err(cause) => Err(cause),
            },
        };
        if let Err(cause) = kept {
            tracing::warn!(cause, "transcript_not_kept");
        } else if has_rounds {
            self.forget_rounds((tenant, user), place).await;
        }
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("the store did not answer in time".to_owned()),
    }
}
