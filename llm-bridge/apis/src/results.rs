//! What a conversation has that chat APIs of model servers cannot say, in other words: media in the results of tools and elsewhere, failures of
//! tools, calls of tools that take free text.

use std::{borrow::Cow, collections::HashMap};

use crate::{
    Call, CallInput, Content, Media, MediaKind, MediaSource, Message, Part, Role, ToolResult,
    message::plain_text, passing::Passing,
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

/// What stands for media where a model server takes only text: the text itself of a document that is one, else a description.
fn in_words(media: &Media) -> String {
    match &media.source {
        MediaSource::Text(text) => {
            let title = media.name.as_ref().map(|name| format!("{name}\n\n"));
            title.unwrap_or_default() + text
        }
        _ => media.description(None, "the model server takes no such files"),
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

/// The conversation for an API whose results are text, which has only functions, and no field that says that a tool has failed: the media of
/// results [stand behind them](move_media_behind_results), those that the API does not carry are described, and the text of a failed result says so.
pub(crate) fn in_text_and_functions(
    messages: &[Message],
    carries: impl Fn(&Part) -> bool,
) -> Vec<Cow<'_, Message>> {
    let mut all = move_media_behind_results(messages, &carries);
    for message in &mut all {
        let said: Vec<_> = message.parts.iter().map(|part| in_other_words(part, &carries)).collect();
        if said.iter().any(Option::is_some) {
            let parts = &mut message.to_mut().parts;
            parts.iter_mut().zip(said).for_each(|(part, said)| {
                if let Some(said) = said {
                    *part = said;
                }
            });
        }
    }
    all
}

/// The part in other words, where the API has none of its own for it.
fn in_other_words(part: &Part, carries: impl Fn(&Part) -> bool) -> Option<Part> {
    match &part.content {
        Content::Media(media) if !carries(part) => Some(Content::Text(in_words(media)).into()),
        Content::Call(call) if call.input == CallInput::Text => {
            let arguments = call.function_arguments().into_owned();
            let call = Call { arguments, input: CallInput::Json, ..call.clone() };
            Some(Part { content: Content::Call(call), passing: part.passing.clone() })
        }
        Content::Result(result) if result.is_error && !says_failed(&result.plain_text()) => {
            let mut result = result.clone();
            let first = result.parts.iter_mut().find_map(|part| match &mut part.content {
                Content::Text(text) => Some(text),
                _ => None,
            });
            match first {
                Some(text) => text.insert_str(0, "Error: "),
                None => result.parts.insert(0, Content::Text("Error".to_owned()).into()),
            }
            Some(Part { content: Content::Result(result), passing: part.passing.clone() })
        }
        _ => None,
    }
}

/// Whether a line of a failed result begins with the word for that, if only as the name of a field.
fn says_failed(text: &str) -> bool {
    text.lines().any(|line| {
        let words = line.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        words.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"))
    })
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
        moved.push(Cow::Owned(Message { passing, ..Message::new(Role::Tool, parts) }));
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
            MediaSource::Text(_) => in_words(media),
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
            _ => in_words(media),
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
