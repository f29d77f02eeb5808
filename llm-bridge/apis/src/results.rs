//! Media in the results of tools, for APIs whose results are text.

use std::{borrow::Cow, collections::HashMap};

use crate::{
    Content, Media, MediaKind, MediaSource, Message, Part, Role, ToolResult, message::plain_text,
    passing::Passing,
};

/// How much of a name or an address a description repeats, in characters.
const LONGEST_NAME: usize = 200;

impl MediaKind {
    /// The word for it.
    const fn word(self) -> &'static str {
        match self {
            Self::Image => "picture",
            Self::Audio => "recording",
            Self::Video => "video",
            Self::File => "file",
        }
    }
}

impl Media {
    /// What it is, for a model that does not get it, and why it does not. `dimensions` are the width and the height of a picture in pixels.
    ///
    /// ```
    /// use toolrack_apis::{Media, MediaKind, MediaSource};
    ///
    /// let media = Media::new(MediaKind::Image, MediaSource::Data("aGVsbG8=".into()));
    /// let media = Media { media_type: Some("image/png".into()), ..media };
    /// assert_eq!(
    ///     media.description(Some((640, 480)), "this model takes text only"),
    ///     "[picture, image/png, 640 x 480 pixels, 5 bytes; not shown: this model takes text only]"
    /// );
    /// ```
    pub fn description(&self, dimensions: Option<(u32, u32)>, why: &str) -> String {
        let mut text = format!("[{}", self.kind.word());
        let mut add = |what: String| text.push_str(&what);
        if let Some(name) = &self.name {
            add(format!(" `{}`", in_one_line(name)));
        }
        if let Some(media_type) = &self.media_type {
            add(format!(", {}", in_one_line(media_type)));
        }
        if let Some((width, height)) = dimensions {
            add(format!(", {width} x {height} pixels"));
        }
        match &self.source {
            MediaSource::Data(data) => add(format!(", {} bytes", decoded_length(data))),
            MediaSource::Text(text) => add(format!(", {} bytes", text.len())),
            MediaSource::Url(url) => add(format!(", {}", in_one_line(url))),
            MediaSource::Id(id) => add(format!(", id {}", in_one_line(id))),
        }
        add(format!("; not shown: {why}]"));
        text
    }
}

fn in_one_line(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(LONGEST_NAME).map(shown).collect()
}

/// Three bytes are four characters of Base64.
fn decoded_length(base64: &str) -> usize {
    let characters = base64.trim_end().trim_end_matches('=').len();
    characters / 4 * 3 + (characters % 4).saturating_sub(1)
}

/// The conversation with the media of results in a message of the user that stands behind all results of their round, or at the beginning of the
/// user's message that stands there already. Chat completions have text in results, and what model servers and chat templates do with more differs:
/// <https://platform.openai.com/docs/api-reference/chat/create>; Ollama's renderers leave out pictures of messages of role `tool`.
///
/// Each leaves a line in its result, and a line before it says whose it is and that the user has not sent it. Files that are text become part of the result.
/// What the API does not carry is described there.
pub fn move_media_behind_results(
    messages: &[Message],
    carries: impl Fn(&Part) -> bool,
) -> Vec<Cow<'_, Message>> {
    let mut moved: Vec<Cow<'_, Message>> = Vec::with_capacity(messages.len() + 1);
    let (mut behind, mut number, mut names) = (Vec::new(), 0, None);
    for message in messages {
        if message.role != Role::Tool {
            number = 0;
            if behind.is_empty() {
                moved.push(Cow::Borrowed(message));
                continue;
            }
            let mut media = Message::new(Role::User, std::mem::take(&mut behind));
            if message.role == Role::User {
                media.parts.extend_from_slice(&message.parts);
                media.passing = message.passing.clone();
                moved.push(Cow::Owned(media));
            } else {
                moved.extend([Cow::Owned(media), Cow::Borrowed(message)]);
            }
            continue;
        }
        if !message.parts.iter().any(has_media) {
            moved.push(Cow::Borrowed(message));
            continue;
        }
        let names = names.get_or_insert_with(|| names_of_calls(messages));
        let parts = message.parts.iter().map(|part| match &part.content {
            Content::Result(result) => {
                let name = result.name.as_deref().or_else(|| names.get(result.call_id.as_str()).copied());
                let parts = take_media(result, name, &carries, &mut number, &mut behind);
                let result = ToolResult {
                    name: result.name.clone(),
                    call_id: result.call_id.clone(),
                    parts,
                    ..*result
                };
                Part { content: Content::Result(result), passing: part.passing.clone() }
            }
            _ => part.clone(),
        });
        let (parts, passing) = (parts.collect(), message.passing.clone());
        moved.push(Cow::Owned(Message { role: Role::Tool, parts, passing }));
    }
    if !behind.is_empty() {
        moved.push(Cow::Owned(Message::new(Role::User, behind)));
    }
    moved
}

fn has_media(part: &Part) -> bool {
    match &part.content {
        Content::Result(result) => result.parts.iter().any(|part| matches!(part.content, Content::Media(_))),
        _ => false,
    }
}

fn names_of_calls(messages: &[Message]) -> HashMap<&str, &str> {
    messages.iter().flat_map(Message::calls).map(|call| (call.id.as_str(), call.name.as_str())).collect()
}

/// The parts of a result without its media, which go to `behind`.
fn take_media(
    result: &ToolResult,
    name: Option<&str>,
    carries: impl Fn(&Part) -> bool,
    number: &mut usize,
    behind: &mut Vec<Part>,
) -> Vec<Part> {
    let mut texts: Vec<Part> = Vec::new();
    let mut others = Vec::new();
    for part in &result.parts {
        let media = match &part.content {
            Content::Media(media) => media,
            Content::Text(_) => {
                texts.push(part.clone());
                continue;
            }
            _ => {
                others.push(part.clone());
                continue;
            }
        };
        let line = match &media.source {
            MediaSource::Text(text) => {
                let title = media.name.as_ref().map(|name| format!("{name}\n\n"));
                title.unwrap_or_default() + text
            }
            _ if carries(part) => {
                *number += 1;
                let what = format!("{} {number}", media.kind.word());
                let tool = name.map_or_else(|| "a tool".to_owned(), |name| format!("the tool `{name}`"));
                let id = &result.call_id;
                let label = format!(
                    "[{what}, returned by {tool} in the result of call `{id}`, not sent by the user]"
                );
                behind.extend([Content::Text(label).into(), part.clone()]);
                format!("[{what}: in the message after the results]")
            }
            _ => media.description(None, "the model server takes no such files"),
        };
        texts.push(Content::Text(line).into());
    }
    // Some servers take only one text.
    let text = Some(plain_text(&texts)).filter(|text| !text.is_empty());
    text.map(|text| Part { content: Content::Text(text), passing: Passing::none() })
        .into_iter()
        .chain(others)
        .collect()
}
