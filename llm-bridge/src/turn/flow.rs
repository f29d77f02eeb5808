//! What a turn has read, and so what its next calls are judged by.

use std::{collections::HashMap, sync::Arc};

use registry_core::flow::{HasRead, Reads, TurnFlow};
use toolrack_apis::{Content, MediaKind, Message, Request, Role};

use super::{
    call::FoundCall,
    offer::Offer,
    quoted::Others,
    run::Run,
    transcript::{Shown, key_of_chat},
};

/// So much of what the person has said is kept, the last of it, in bytes.
const MAX_SAID: usize = 64 << 10;
/// A call that the answer only quotes comes from here.
const QUOTED: &str = "a quoted passage";
/// What a host has put into the request from its documents.
const KNOWLEDGE_BASE: &str = "the knowledge base";
/// A document or a picture that a message has with it may be written by anybody, and hold what is nobody else's business.
const ATTACHED: &str = "an attached file";

/// All that the person has said in the conversation.
pub(super) fn said_in(request: &Request) -> Arc<str> {
    let all = request.conversation.earlier.iter().chain(&request.messages);
    let (mut texts, mut room) = (Vec::new(), MAX_SAID);
    for message in all.rev().filter(|message| message.role == Role::User) {
        let text = message.plain_text();
        let start = text.ceil_char_boundary(text.len().saturating_sub(room));
        room = room.saturating_sub(text.len());
        texts.push(text.get(start..).unwrap_or_default().to_owned());
        if room == 0 {
            break;
        }
    }
    texts.reverse();
    texts.join("\n").into()
}

impl Offer {
    /// What the results in a conversation hold, those of the client's tools included: of these nobody says anything; and the files in it.
    fn read_in(&self, messages: &[Message]) -> HasRead {
        let mut read = HasRead::default();
        for name in tools_of_results(messages) {
            match self.server_tool(name) {
                Some(tool) => read.note(tool.reads(), tool.name()),
                None => read.note(Reads::BOTH, name),
            }
        }
        if messages.iter().any(has_attached) {
            read.note(Reads::BOTH, ATTACHED);
        }
        read
    }
}

/// The names of the tools that the results in a conversation are of.
fn tools_of_results(messages: &[Message]) -> impl Iterator<Item = &str> {
    let calls: HashMap<&str, &str> =
        messages.iter().flat_map(Message::calls).map(|call| (&*call.id, &*call.name)).collect();
    messages.iter().filter_map(Message::tool_result).map(move |result| {
        let name = result.name.as_deref().or_else(|| calls.get(&*result.call_id).copied());
        name.unwrap_or("a tool of the client")
    })
}

/// What the results hold that a client has sent: anything, whichever tool it says they are of.
pub(super) fn sent_by_client(request: &Request) -> HasRead {
    let mut read = HasRead::default();
    // Where the server keeps the conversation, they are its own.
    if !request.conversation.begins_anew {
        tools_of_results(&request.messages).for_each(|name| read.note(Reads::BOTH, name));
    }
    read
}

/// Whether a message has something with it that is neither written nor, as far as one can tell, spoken by who has sent it.
fn has_attached(message: &Message) -> bool {
    message.parts.iter().any(|part| match &part.content {
        Content::Media(media) => media.kind != MediaKind::Audio,
        // In an answer it says what this server's own tools have done, which is known.
        Content::Opaque(..) => message.role != Role::Assistant,
        _ => false,
    })
}

impl Run {
    /// Takes note of what the conversation has read before this turn.
    pub(super) fn recall_read(&mut self) {
        self.read = std::mem::take(&mut self.place.read);
        self.read.add(&self.offer.read_in(&self.request.messages));
        if self.offer.context.conversation().kb_context.is_some() {
            self.read.note(Reads::BOTH, KNOWLEDGE_BASE);
        }
    }

    /// What the calls of an answer are judged by: what the model had read when it wrote them, so that calls of one answer do not count for
    /// each other. A call that is only quoted is nobody's wish.
    pub(super) fn flows(&self, calls: &[FoundCall]) -> Vec<Arc<TurnFlow>> {
        let written = Arc::new(TurnFlow { read: self.read.clone(), said: Arc::clone(&self.said) });
        let mut others = None;
        let flow = |call: &FoundCall| {
            let mut is_theirs = |source: &String| {
                others.get_or_insert_with(|| Others::of(&self.request.messages)).have_written(source)
            };
            if !call.is_quoted && !call.source.as_ref().is_some_and(&mut is_theirs) {
                return Arc::clone(&written);
            }
            let mut quoted = TurnFlow::after(self.read.clone());
            quoted.read.note(Reads::UNTRUSTED, QUOTED);
            Arc::new(quoted)
        };
        calls.iter().map(flow).collect()
    }

    /// Takes note of what calls have read, before the model gets it.
    pub(super) fn has_read(&mut self, read: &HasRead) {
        let before = self.read.clone();
        self.read.add(read);
        if self.read != before
            && let Some(kept) = self.keep_read(None)
        {
            // The client may go away in the middle of the answer, and come back with what it has seen.
            drop(self.backend.spawn(kept));
        }
    }

    /// Keeps what the conversation has read, if it has; `shown` is the whole answer, once it is there.
    pub(super) fn keep_read(&self, shown: Option<&Shown>) -> Option<impl Future<Output = ()> + Send + use<>> {
        let keys = self.place.read_keys(shown).filter(|_| !self.read.is_empty())?;
        let (backend, read) = (self.backend.clone(), self.read.clone());
        let user = self.offer.context.caller().user.clone();
        let of_chat = self.offer.context.conversation().chat_id.as_deref().map(key_of_chat);
        Some(async move {
            if backend.has_user().await {
                let owner = (backend.registry().tenant(), user.as_str());
                backend.transcripts.keep_read(owner, keys, &read).await;
                if let Some(chat) = of_chat {
                    backend.transcripts.keep_read(owner, (chat, None), &read).await;
                }
            }
        })
    }
}
