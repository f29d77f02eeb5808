//! A message of a chat as it is kept, and what the model gets of it.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use registry_core::store::ChatMessage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolrack_apis::{Call, Content, Media, MediaKind, MediaSource, Message, Role, ToolResult, names::legal};

use super::message::{By, CallPart, CallState, FilePart, Part, Shown, Status};
use crate::{
    server::requests::api_error::ApiError,
    turn::{INTERRUPTED, write_within},
};

/// How much of a message is found by its words, in bytes.
const SEARCHED: usize = 64 << 10;
/// What a turn has said and found is kept for the model up to this size, in bytes; beyond it the model gets what the person sees.
const MAX_SAID: u64 = 16 << 20;

/// A message as it is kept.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) shown: Shown,
    /// What the model gets of it: the user's message, or what the turn has added to the conversation. Empty of a turn that did not end by itself.
    pub(super) said: Vec<Message>,
    /// The deferred tools that the conversation has found by then.
    pub(super) found: Vec<String>,
}

/// What the model gets of a message, as it is kept.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Context {
    said: Vec<Message>,
    found: Vec<String>,
}

/// What is shown of a message, as it is kept. Earlier versions have kept with it what the model gets.
#[derive(Deserialize)]
struct Document {
    shown: Shown,
    #[serde(flatten)]
    context: Context,
}

/// The same for whoever shows it.
#[derive(Deserialize)]
struct OnlyShown {
    shown: Shown,
}

fn unreadable(error: &serde_json::Error) -> ApiError {
    tracing::error!(%error, "a message of a chat cannot be read");
    ApiError::internal("a message of the chat cannot be read; see the server's log")
}

impl Shown {
    /// Reads the message of a store.
    pub(super) fn of(message: &ChatMessage) -> Result<Self, ApiError> {
        serde_json::from_str(&message.document)
            .map(|kept: OnlyShown| kept.shown)
            .map_err(|error| unreadable(&error))
    }
}

impl Kept {
    /// A user's message.
    pub(super) fn of_user(
        (chat, id): (&str, String),
        parent: Option<String>,
        created_at: Timestamp,
        said: Message,
    ) -> Self {
        let path = |at| format!("api/chats/{chat}/messages/{id}/files/{at}");
        let parts = said.parts.iter().enumerate().filter_map(|(at, part)| match &part.content {
            Content::Text(text) => Some(Part::Text { text: text.clone() }),
            Content::Media(media) => Some(file_part(media, path(at))),
            _ => None,
        });
        let parts = parts.collect();
        let shown = Shown { parts, status: Status::Done, ..Shown::begun(id, parent, By::User, created_at) };
        Self { shown, said: vec![said], found: Vec::new() }
    }

    /// Reads the message of a store.
    pub(super) fn of(message: &ChatMessage) -> Result<Self, ApiError> {
        let read = || {
            let Document { shown, context } = serde_json::from_str(&message.document)?;
            let context = match &*message.context {
                "" => context,
                context => serde_json::from_str(context)?,
            };
            Ok(Self { shown, said: context.said, found: context.found })
        };
        read().map_err(|error| unreadable(&error))
    }

    /// The message for the store. What the model gets of it is left out where it is too large. A long one takes a while.
    pub(super) fn stored(&self) -> Result<ChatMessage, serde_json::Error> {
        #[derive(Serialize)]
        struct Document<'k> {
            shown: &'k Shown,
        }
        #[derive(Serialize)]
        struct Written<'k> {
            said: &'k [Message],
            found: &'k [String],
        }
        let Self { shown, said, found } = self;
        let write = |said: &[Message]| serde_json::to_string(&Written { said, found });
        let is_small = |text: &str| u64::try_from(text.len()).is_ok_and(|bytes| bytes <= MAX_SAID);
        let context = match shown.role {
            By::User => write(said)?,
            By::Assistant if said.is_empty() && found.is_empty() => String::new(),
            By::Assistant => match write_within(MAX_SAID, said, write)? {
                small if is_small(&small) => small,
                _ => write(&[])?,
            },
        };
        let mut text = shown.text();
        text.truncate(text.floor_char_boundary(SEARCHED));
        Ok(ChatMessage {
            id: shown.id.clone(),
            parent: shown.parent.clone(),
            created_at: shown.created_at,
            text,
            document: serde_json::to_string(&Document { shown })?.into(),
            context: context.into(),
        })
    }

    /// What the model gets of the message.
    pub(super) fn for_model(self) -> Vec<Message> {
        match (self.said.is_empty(), self.shown.role) {
            (true, By::Assistant) => as_seen(&self.shown.parts),
            _ => self.said,
        }
    }
}

/// What the model gets of an answer that broke off: its text, and the calls that were finished with their results.
pub(super) fn as_seen(parts: &[Part]) -> Vec<Message> {
    let (mut messages, mut saying) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text { text } if !text.trim().is_empty() => {
                saying.push(Content::Text(text.trim_end().to_owned()).into())
            }
            Part::Call(call) if call.has_outcome() => {
                let name = legal(&call.name);
                saying.push(Content::Call(Call::new(&*call.id, &*name, call.arguments.to_string())).into());
                messages.push(Message::new(Role::Assistant, std::mem::take(&mut saying)));
                let text = match (&call.result, &call.error) {
                    (Some(Value::String(text)), _) => text.clone(),
                    (Some(result), _) => result.to_string(),
                    (None, error) => error.clone().unwrap_or_default(),
                };
                let parts = if text.is_empty() { Vec::new() } else { vec![Content::Text(text).into()] };
                let is_error = call.result.is_none() && call.state != CallState::Ok;
                messages.push(Message::result(ToolResult {
                    call_id: call.id.clone(),
                    name: Some(name),
                    parts,
                    is_error,
                }));
            }
            _ => {}
        }
    }
    if !saying.is_empty() {
        messages.push(Message::new(Role::Assistant, saying));
    }
    messages
}

/// The same of an answer that goes on, of whose calls some were interrupted.
pub(super) fn as_interrupted(parts: &[Part]) -> Vec<Message> {
    let interrupted = |part: &Part| match part {
        Part::Call(call) if call.state == CallState::Running => {
            let error = Some(INTERRUPTED.to_owned());
            Part::Call(Box::new(CallPart { state: CallState::Failed, error, ..(**call).clone() }))
        }
        part => part.clone(),
    };
    as_seen(&parts.iter().map(interrupted).collect::<Vec<_>>())
}

fn file_part(media: &Media, path: String) -> Part {
    let Media { kind, source, media_type: _, name, detail: _ } = media;
    let mut file = FilePart {
        name: name.clone(),
        media_type: media.known_type().map(str::to_owned),
        ..FilePart::default()
    };
    match source {
        MediaSource::Data(data) => {
            let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
            file.size = Some((data.len() / 4 * 3).saturating_sub(padding));
            file.path = Some(path);
        }
        MediaSource::Text(text) => (file.size, file.path) = (Some(text.len()), Some(path)),
        MediaSource::Url(url) => file.url = Some(url.clone()),
        MediaSource::Id(_) => {}
    }
    match kind {
        MediaKind::Image => Part::Image(file),
        MediaKind::Audio => Part::Audio(file),
        MediaKind::Video => Part::Video(file),
        MediaKind::File => Part::File(file),
    }
}

/// A file of a user's message: its name, its media type and its bytes.
pub(super) fn file(kept: &Kept, at: usize) -> Option<(String, String, Vec<u8>)> {
    let Content::Media(media) = &kept.said.first()?.parts.get(at)?.content else { return None };
    let bytes = match &media.source {
        MediaSource::Data(data) => BASE64_STANDARD.decode(data).ok()?,
        MediaSource::Text(text) => text.clone().into_bytes(),
        MediaSource::Url(_) | MediaSource::Id(_) => return None,
    };
    let media_type = media.known_type().unwrap_or("application/octet-stream").to_owned();
    Some((media.name.clone().unwrap_or_else(|| "file".to_owned()), media_type, bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a25_what_the_model_gets_stands_beside_what_is_shown() {
        let said = Message::text(Role::User, "Hello");
        let kept = Kept::of_user(("chat_1", "msg_1".into()), None, Timestamp::UNIX_EPOCH, said.clone());
        let mut stored = kept.stored().unwrap();
        assert!(!stored.document.contains("\"said\"") && stored.context.contains("Hello"));
        assert_eq!(Kept::of(&stored).unwrap().said, std::slice::from_ref(&said));
        assert_eq!(Shown::of(&stored).unwrap(), kept.shown);

        // Earlier versions have kept both as one.
        stored.document = json!({"shown": kept.shown, "said": [said], "found": ["a.b"]}).to_string().into();
        stored.context = "".into();
        let kept = Kept::of(&stored).unwrap();
        assert_eq!((kept.said, kept.found), (vec![said], vec!["a.b".to_owned()]));
    }

    #[test]
    fn b17_of_an_answer_the_model_gets_so_much_again_and_beyond_it_what_is_shown() {
        let begun = || Shown::begun("m".to_owned(), None, By::Assistant, Timestamp::UNIX_EPOCH);
        let kept = |bytes: usize| {
            let said = vec![Message::text(Role::Assistant, "x".repeat(bytes))];
            Kept { shown: begun(), said, found: Vec::new() }.stored().unwrap()
        };
        assert!(kept(15 << 20).context.len() > 15 << 20);
        let stored = kept(16 << 20);
        assert!(stored.context.len() < 1000, "{}", stored.context.len());
        assert!(Kept::of(&stored).unwrap().said.is_empty());
    }
}
