//! Puts transcripts in the place of what the client has seen of them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use registry_core::store::StoredTranscript;
use serde::{Deserialize, Serialize};
use toolrack_apis::{Content, Message, Role};

use super::visible::VisibleAnswer;

/// What a turn has added to a conversation, as it is kept.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Added<'a> {
    pub(super) messages: &'a [Message],
    /// The deferred tools that the conversation has found so far, whose definitions stand in the prompt.
    pub(super) found: &'a [String],
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
                ids.extend(new_ids(&answered, &transcript.messages));
                messages.extend(transcript.messages.iter().cloned());
                replaced.last = Some(transcript.messages.len());
                let new = transcript.found.iter().filter(|name| !replaced.found.contains(name));
                let new: Vec<String> = new.cloned().collect();
                replaced.found.extend(new);
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
    let transcript = match &answer.call {
        Some((id, key)) => transcripts.get(key).or_else(|| if is_own(id) { None } else { visible() }),
        None => visible(),
    };
    transcript.map(|transcript| &**transcript)
}

/// Whether this server has made an id, so that it leads to its turn or to none. Fronts make `call00000` and so on where clients leave
/// ids out.
fn is_own(id: &str) -> bool {
    let is_made_up =
        id.strip_prefix("call").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) && !is_made_up
}

/// The ids that the client's calls have in a transcript, by those that the client has sent, where these are others.
fn new_ids(answered: &[Message], transcript: &[Message]) -> Vec<(String, String)> {
    let results: HashSet<&str> =
        transcript.iter().filter_map(|message| Some(message.tool_result()?.call_id.as_str())).collect();
    let kept: Vec<&String> = transcript.iter().flat_map(Message::calls).map(|call| &call.id).collect();
    let sent = answered.iter().flat_map(Message::calls).map(|call| &call.id);
    let clients = kept.iter().filter(|id| !results.contains(id.as_str()));
    let pairs = sent.zip(clients).filter(|(sent, _)| !kept.contains(sent));
    pairs.map(|(sent, kept)| (sent.clone(), (*kept).clone())).collect()
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
