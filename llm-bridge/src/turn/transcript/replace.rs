//! Puts transcripts in the place of what the client has seen of them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use registry_core::{flow::HasRead, store::StoredTranscript};
use serde::{Deserialize, Serialize};
use toolrack_apis::{Call, Content, Message, Role};

use super::{
    fingerprint::is_same_call,
    unfinished::Unfinished,
    visible::{VisibleAnswer, begins_with, behind},
};

/// What a turn has added to a conversation, as it is kept.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in super::super) struct Added<'a> {
    pub(in super::super) messages: &'a [Message],
    /// The deferred tools that the conversation has found so far, whose definitions stand in the prompt.
    pub(in super::super) found: &'a [String],
    /// What the conversation had read.
    pub(in super::super) read: &'a HasRead,
    /// The texts of which the client has one, or its beginning, where the answer broke off.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(in super::super) texts: &'a [&'a str],
    /// How far a turn has come that has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) unfinished: Option<Unfinished>,
}

/// The same, read again.
#[derive(Debug, Deserialize)]
pub(super) struct Transcript {
    /// What it is kept under.
    #[serde(skip)]
    key: String,
    messages: Vec<Message>,
    #[serde(default)]
    found: Vec<String>,
    #[serde(default)]
    read: HasRead,
    #[serde(default)]
    texts: Vec<String>,
    #[serde(default)]
    unfinished: Option<Unfinished>,
}

/// Transcripts by both their keys.
pub(super) type Transcripts = HashMap<String, Arc<Transcript>>;

pub(super) fn read_all(stored: Vec<StoredTranscript>) -> Transcripts {
    let mut all = Transcripts::new();
    for StoredTranscript { key, other_key, messages, .. } in stored {
        match serde_json::from_str::<Transcript>(&messages) {
            Ok(read) => {
                let read = Arc::new(Transcript { key: key.clone(), ..read });
                all.insert(other_key, Arc::clone(&read));
                all.insert(key, read);
            }
            Err(error) => tracing::warn!(%error, "transcript_not_understood"),
        }
    }
    all
}

/// What has been put back.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    /// How many messages the last answer has become, if it was replaced.
    pub(super) last: Option<usize>,
    /// The deferred tools that the conversation has found.
    pub(super) found: Vec<String>,
    /// What it had read.
    pub(super) read: HasRead,
}

impl Replaced {
    fn takes(&mut self, transcript: &Transcript) {
        self.read.add(&transcript.read);
        let new = transcript.found.iter().filter(|name| !self.found.contains(name));
        let new: Vec<String> = new.cloned().collect();
        self.found.extend(new);
    }

    /// Puts the rounds of a turn that has no answer behind the conversation that it began with.
    pub(super) fn resume(&mut self, messages: &mut Vec<Message>, transcript: &Transcript) -> Option<Resumed> {
        let unfinished = transcript.unfinished.filter(Unfinished::may_go_on)?;
        // What was said behind the last result the client does not have, as it asks for it anew.
        let end = transcript.messages.iter().rposition(|message| message.role == Role::Tool)? + 1;
        messages.extend(transcript.messages.iter().take(end).cloned());
        self.last = Some(end);
        self.takes(transcript);
        Some(Resumed { messages: end, failed: unfinished.failed })
    }
}

/// The rounds of an unfinished turn that this one goes on with.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Resumed {
    /// How many messages they have.
    pub(in super::super) messages: usize,
    /// How often the model server has failed behind them.
    pub(in super::super) failed: u32,
}

impl Transcript {
    /// What the client has of an answer beyond what was kept of it.
    fn more_of<'t>(&self, answer: &'t VisibleAnswer) -> Option<&'t str> {
        self.unfinished.filter(|unfinished| unfinished.is_under_way)?;
        let (text, _) = answer.broken.as_ref().filter(|(_, key)| *key == self.key)?;
        let more = self.texts.iter().filter_map(|kept| behind(text, kept)).min_by_key(|more| more.len());
        more.map(str::trim).filter(|more| !more.is_empty())
    }

    /// Whether this may be the answer of which a client has this text.
    fn may_be(&self, text: &str) -> bool {
        let is_under_way = self.unfinished.is_some_and(|unfinished| unfinished.is_under_way);
        let is_it = |kept: &String| begins_with(kept, text) || is_under_way && begins_with(text, kept);
        self.texts.iter().any(is_it)
    }
}

/// Puts transcripts in the place of answers.
pub(super) fn replace(
    messages: &mut Vec<Message>,
    answers: &[VisibleAnswer],
    transcripts: &Transcripts,
) -> Replaced {
    let mut sent = std::mem::take(messages).into_iter();
    let (mut at, mut ids, mut replaced) = (0, HashMap::new(), Replaced::default());
    let mut put_back = HashSet::new();
    for answer in answers {
        messages.extend(sent.by_ref().take(answer.messages.start - at).map(|message| renamed(message, &ids)));
        let answered: Vec<Message> = sent.by_ref().take(answer.messages.len()).collect();
        at = answer.messages.end;
        match transcript_of(answer, transcripts).filter(|transcript| put_back.insert(&transcript.key)) {
            Some(transcript) => {
                let more = transcript.more_of(answer);
                ids.extend(new_ids(&answered, &transcript.messages));
                let begin = messages.len();
                messages.extend(transcript.messages.iter().cloned());
                let kept = messages.get_mut(begin..).unwrap_or_default();
                change_calls(kept, answered.iter().flat_map(Message::calls));
                messages.extend(more.map(|text| Message::text(Role::Assistant, text)));
                replaced.last = Some(messages.len() - begin);
                replaced.takes(transcript);
            }
            None => {
                messages.extend(answered);
                replaced.last = None;
            }
        }
    }
    messages.extend(sent.map(|message| renamed(message, &ids)));
    replaced
}

fn transcript_of<'t>(answer: &VisibleAnswer, transcripts: &'t Transcripts) -> Option<&'t Transcript> {
    let visible = || transcripts.get(&answer.key);
    let broken = || {
        let (text, key) = answer.broken.as_ref()?;
        transcripts.get(key).filter(|kept| kept.may_be(text))
    };
    let transcript = match &answer.call {
        Some((id, key)) => transcripts.get(key).or_else(|| if is_own(id) { None } else { visible() }),
        None => visible().or_else(broken),
    };
    transcript.map(|transcript| &**transcript)
}

/// Whether this server has made an id, so that it leads to its turn or to none. Fronts make `call00000` and so on where clients leave
/// ids out.
pub(super) fn is_own(id: &str) -> bool {
    let is_made_up =
        id.strip_prefix("call").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) && !is_made_up
}

/// The ids that the client's calls have in a transcript, by those that the client has sent, where these are others.
fn new_ids(answered: &[Message], transcript: &[Message]) -> Vec<(String, String)> {
    let results: HashSet<&str> =
        transcript.iter().filter_map(|message| Some(message.tool_result()?.call_id.as_str())).collect();
    let ids = || transcript.iter().flat_map(Message::calls).map(|call| &call.id);
    let kept: HashSet<&String> = ids().collect();
    let sent = answered.iter().flat_map(Message::calls).map(|call| &call.id);
    let clients = ids().filter(|id| !results.contains(id.as_str()));
    let pairs = sent.zip(clients).filter(|(sent, _)| !kept.contains(sent));
    pairs.map(|(sent, kept)| (sent.clone(), kept.clone())).collect()
}

/// Changes the client's calls in a transcript as the client has, where a person corrects them there: the result that follows is that of the
/// changed call. Calls of the server have their results here.
fn change_calls<'c>(transcript: &mut [Message], sent: impl Iterator<Item = &'c Call>) {
    let results = transcript.iter().filter_map(|message| Some(message.tool_result()?.call_id.clone()));
    let results: HashSet<String> = results.collect();
    let sent: HashMap<&str, &Call> =
        sent.filter(|sent| !results.contains(&sent.id)).map(|sent| (sent.id.as_str(), sent)).collect();
    for message in transcript {
        for part in &mut message.parts {
            // What is no object in the model's words is one in those of some APIs.
            if let Content::Call(call) = &mut part.content
                && let Some(sent) = sent.get(call.id.as_str())
                && call.arguments_object().is_some()
                && !is_same_call(call, sent)
            {
                call.name.clone_from(&sent.name);
                call.arguments.clone_from(&sent.arguments);
                message.written = None;
            }
        }
    }
}

/// The result of a call under the id that the call has now.
fn renamed(mut message: Message, ids: &HashMap<String, String>) -> Message {
    if message.role == Role::Tool {
        for part in &mut message.parts {
            if let Content::Result(result) = &mut part.content
                && let Some(id) = ids.get(&result.call_id)
            {
                result.call_id.clone_from(id);
            }
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A message with so many calls, named apart.
    fn calls(many: usize, name: &str) -> Message {
        let call = |number| Content::Call(Call::new(format!("{name}{number}"), "f", "{}")).into();
        Message::new(Role::Assistant, (0..many).map(call).collect())
    }

    #[test]
    fn b7_the_ids_of_many_calls_are_compared_in_time_that_grows_with_their_number() {
        let quickest = |many: usize| {
            let took = |_| {
                let (sent, mut kept) = ([calls(many, "sent")], [calls(many, "kept")]);
                let began = Instant::now();
                assert_eq!(new_ids(&sent, &kept).len(), many);
                change_calls(&mut kept, sent.iter().flat_map(Message::calls));
                began.elapsed()
            };
            (0..3).map(took).min().unwrap_or(Duration::MAX)
        };
        let (few, many) = (quickest(2_000), quickest(16_000));
        assert!(many < few * 24, "eight times as many calls took {many:?} in place of {few:?}");
    }
}
