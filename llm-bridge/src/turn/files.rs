//! Documents that people send with their messages: what a model gets of them whose server takes none.
//!
//! Their text is read as that of documents that are added, PDFs and office documents in confined processes of their own. What has no text, or cannot
//! be read, is described.

use std::{sync::Arc, time::Duration};

use base64::Engine;
use moka::sync::Cache;
use registry_core::UserPlaces;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};
use toolrack_apis::{Content, Media, MediaKind, MediaSource, Message, Passing, TurnEvent};

use super::{pictures::BASE64, run::Run};

/// How many documents of a request are read; those before are described.
const MOST: usize = 16;
/// How much text of one a model gets, in bytes; the rest is cut off.
const MAX_TEXT: usize = 1 << 20;
/// How long they may take together, with waiting.
const PATIENCE: Duration = Duration::from_secs(90);
/// How many are read at once; one of each user.
const AT_ONCE: usize = 2;
/// How many bytes of texts are kept for the next request with the same, as clients send all of a conversation each time.
const KEPT_BYTES: u64 = 32 << 20;
/// How long they are.
const KEPT: Duration = Duration::from_secs(3600);

/// The text of a document, or why there is none.
type Text = Result<Arc<str>, Arc<str>>;

/// Reads documents.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// By a hash of the document.
    texts: Cache<[u8; 32], Text>,
    places: UserPlaces,
}

impl Default for Files {
    fn default() -> Self {
        let weigh = |_: &[u8; 32], text: &Text| {
            let (Ok(text) | Err(text)) = text;
            u32::try_from(text.len() + 128).unwrap_or(u32::MAX)
        };
        let texts = Cache::builder().weigher(weigh).max_capacity(KEPT_BYTES).time_to_live(KEPT).build();
        Self { texts, places: UserPlaces::new(1).among(AT_ONCE) }
    }
}

impl Files {
    /// The text of a document that a user has sent.
    async fn text(&self, user: (&str, &str), media: &Media, until: Instant) -> Text {
        let (kept, media) = (self.texts.clone(), media.clone());
        let read = move || {
            let MediaSource::Data(data) = &media.source else {
                return Err("the model server takes no such files".into());
            };
            let (name, said) = (media.name.as_deref().unwrap_or_default(), media.media_type.as_deref());
            let hash = Sha256::new().chain_update(name).chain_update([0]);
            let hash = hash.chain_update(said.unwrap_or_default()).chain_update([0]).chain_update(data);
            kept.get_with(hash.finalize().into(), || text_of(name, said, data))
        };
        match timeout_at(until, self.places.work(user, read)).await {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => Err("it cannot be read".into()),
            Err(_) => Err("it could not be read in time".into()),
        }
    }
}

fn text_of(name: &str, media_type: Option<&str>, data: &str) -> Text {
    let bytes = BASE64.decode(data);
    // Some encoders break lines.
    let bytes = bytes.or_else(|_| BASE64.decode(data.split_ascii_whitespace().collect::<String>()));
    let mut text = read(name, media_type, bytes.map_err(|_| "its data is not Base64")?)?;
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push_str("\n[the rest is not shown: the document is too long]");
    }
    Ok(text.into())
}

#[cfg(feature = "documents")]
fn read(name: &str, media_type: Option<&str>, bytes: Vec<u8>) -> Result<String, Arc<str>> {
    use toolrack_documents::{DocumentKind, read};

    let kind = match media_type {
        _ if bytes.starts_with(b"%PDF-") => Some(DocumentKind::Pdf),
        _ if bytes.starts_with(b"PK\x03\x04") => Some(DocumentKind::Office),
        Some("text/html") => Some(DocumentKind::Html),
        _ => DocumentKind::of(std::path::Path::new(name)),
    };
    let kind = kind.ok_or("it is no document")?;
    let bytes = match kind {
        DocumentKind::Html | DocumentKind::Pdf | DocumentKind::Office => bytes,
        // As it is, without what is left out for a search.
        _ => match as_text(bytes) {
            Ok(text) => return Ok(text),
            Err(bytes) => bytes,
        },
    };
    let document = read::File::new(name, kind, bytes, None).read()?;
    let (mut text, mut page) = (String::new(), 0);
    for line in &document.lines {
        if kind == DocumentKind::Pdf && line.number != page {
            page = line.number;
            text.push_str(&format!("[page {page}]\n"));
        }
        if line.heading > 0 {
            text.push_str(&"#".repeat(line.heading.into()));
            text.push(' ');
        }
        text.push_str(&line.text);
        text.push('\n');
        // A model gets no more.
        if text.len() > MAX_TEXT {
            break;
        }
    }
    Ok(text)
}

#[cfg(not(feature = "documents"))]
fn read(_: &str, _: Option<&str>, bytes: Vec<u8>) -> Result<String, Arc<str>> {
    as_text(bytes)
        .map_err(|_| "this server was built without the feature `documents`, and reads text alone".into())
}

/// The bytes as text, if they are one.
fn as_text(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    let text = String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)?;
    if text.trim().is_empty() || text.contains('\0') { Err(text.into_bytes()) } else { Ok(text) }
}

/// Whether it is a document that only servers with places for files take.
fn is_file(media: &Media) -> bool {
    media.kind == MediaKind::File && matches!(media.source, MediaSource::Data(_) | MediaSource::Id(_))
}

/// How many documents people have sent in their messages.
pub(super) fn count(messages: &[Message]) -> usize {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts.filter(|part| matches!(&part.content, Content::Media(media) if is_file(media))).count()
}

impl Run {
    /// Puts what a model gets of documents in their place, where its server takes none.
    pub(super) async fn read_files(&mut self) {
        let mut older = match count(&self.request.messages) {
            0 => return,
            count => count.saturating_sub(MOST),
        };
        self.api = self.route.api().await;
        if self.takes_files() {
            return;
        }
        let (files, until) = (self.backend.shared.documents.clone(), Instant::now() + PATIENCE);
        let user = (self.backend.registry().tenant(), self.offer.context.caller().user.as_str());
        let mut untold = Vec::new();
        for (message, at) in self.request.messages.iter_mut().zip(0..) {
            for (part, part_at) in message.parts.iter_mut().zip(0..) {
                let Content::Media(media) = &mut part.content else { continue };
                if !is_file(media) {
                    continue;
                }
                let text = if older > 0 {
                    older -= 1;
                    Err(format!("only the last {MOST} documents are read").into())
                } else {
                    files.text(user, media, until).await
                };
                match text {
                    Ok(text) => {
                        media.source = MediaSource::Text(text.as_ref().to_owned());
                        media.media_type = None;
                    }
                    Err(why) => {
                        untold.push((format!("messages[{at}].parts[{part_at}]"), Arc::clone(&why)));
                        part.content = Content::Text(media.description(None, &why));
                    }
                }
                part.passing = Passing::none();
            }
        }
        let untold = untold
            .into_iter()
            .filter_map(|(path, why)| self.tell_once(&format!("`{path}` described: {why}")));
        let mut notices: Vec<TurnEvent> = untold.collect();
        // Who does not listen any more is seen at the answer.
        let _ = self.send_all(&mut notices).await;
    }

    /// Whether the model's server takes documents, as far as it is known. One of which nothing is known may be a hosted one.
    fn takes_files(&self) -> bool {
        self.accepted.takes_files() && self.route.kind().is_none_or(|kind| kind.takes_files)
    }
}
