//! What a model gets in place of pictures.

use std::{borrow::Cow, io::Cursor};

use base64::Engine;
use image::ImageReader;
use toolrack_apis::{Content, Media, MediaKind, MediaSource, Message, Part, Role};

use super::scale;

/// So much Base64 of a picture mostly has its size in it.
const HEADER: usize = 256 * 1024;

/// Whether a medium counts as a picture. Files that are text are text.
pub(super) fn is_counted(media: &Media) -> bool {
    !matches!(media.source, MediaSource::Text(_))
}

fn media_in_results(messages: &[Message]) -> impl Iterator<Item = &Media> {
    let results = messages.iter().filter_map(Message::tool_result);
    results.flat_map(|result| &result.parts).filter_map(|part| match &part.content {
        Content::Media(media) if is_counted(media) => Some(media),
        _ => None,
    })
}

/// How many pictures the results of a conversation have.
pub(in super::super) fn count(messages: &[Message]) -> usize {
    media_in_results(messages).count()
}

/// How many pictures the user has sent.
pub(super) fn count_of_user(messages: &[Message]) -> usize {
    let users = messages.iter().filter(|message| message.role == Role::User);
    let is_picture =
        |part: &&Part| matches!(&part.content, Content::Media(media) if media.kind == MediaKind::Image);
    users.flat_map(|message| &message.parts).filter(is_picture).count()
}

/// Whether the user has sent any.
pub(crate) fn has_pictures_of_user(messages: &[Message]) -> bool {
    count_of_user(messages) > 0
}

/// A message of the user with its pictures described.
pub(crate) fn without_pictures(message: &mut Message) {
    if message.role != Role::User || count_of_user(std::slice::from_ref(message)) == 0 {
        return;
    }
    for part in &mut message.parts {
        if let Content::Media(media) = &part.content
            && media.kind == MediaKind::Image
        {
            part.content = Content::Text(as_older(media, 0));
        }
    }
    join_texts(&mut message.parts);
}

/// The conversation with all pictures in results but the last `most` described; `None` if there are no others.
pub(super) fn described(messages: &[Message], most: usize) -> Option<Vec<Message>> {
    let mut older = count(messages).checked_sub(most).filter(|older| *older > 0)?;
    let described = messages.iter().map(|message| {
        let has_some = older > 0 && media_in_results(std::slice::from_ref(message)).next().is_some();
        if !has_some {
            return Cow::Borrowed(message);
        }
        let part = |part: &Part| {
            let Content::Result(result) = &part.content else { return part.clone() };
            let mut parts: Vec<Part> = Vec::with_capacity(result.parts.len());
            for part in &result.parts {
                parts.push(match &part.content {
                    Content::Media(media) if is_counted(media) && older > 0 => {
                        older -= 1;
                        Content::Text(as_older(media, most)).into()
                    }
                    _ => part.clone(),
                });
            }
            join_texts(&mut parts);
            let (call_id, name) = (result.call_id.clone(), result.name.clone());
            let result = toolrack_apis::ToolResult { call_id, name, parts, is_error: result.is_error };
            Part { content: Content::Result(result), passing: part.passing.clone() }
        };
        let parts = message.parts.iter().map(part).collect();
        Cow::Owned(Message { passing: message.passing.clone(), ..Message::new(message.role, parts) })
    });
    Some(described.map(Cow::into_owned).collect())
}

/// Writes something with messages in at most so many bytes, as far as describing pictures helps, the older ones first.
pub(crate) fn write_within(
    max: u64,
    messages: &[Message],
    write: impl Fn(&[Message]) -> serde_json::Result<String>,
) -> serde_json::Result<String> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let (mut text, mut left) = (write(messages)?, count(messages));
    while text.len() > max && left > 0 {
        left /= 2;
        if let Some(messages) = described(messages, left) {
            text = write(&messages)?;
        }
    }
    Ok(text)
}

/// Describes a picture that is not among the last `most`.
pub(super) fn as_older(media: &Media, most: usize) -> String {
    let why = match most {
        0 => Cow::Borrowed("this model gets no pictures"),
        1 => Cow::Borrowed("only the last picture is shown"),
        most => Cow::Owned(format!("only the last {most} pictures are shown")),
    };
    media.description(dimensions(media), &why)
}

/// The width and height of a picture, if its header says them.
fn dimensions(media: &Media) -> Option<(u32, u32)> {
    let MediaSource::Data(data) = &media.source else { return None };
    let header = data.get(..data.len().min(HEADER) / 4 * 4)?;
    let bytes = scale::BASE64.decode(header).ok()?;
    let format = image::guess_format(&bytes).ok().filter(|format| scale::FORMATS.contains(format))?;
    ImageReader::with_format(Cursor::new(bytes), format).into_dimensions().ok()
}

/// Joins texts that stand next to each other: some model servers take only one in a result.
pub(super) fn join_texts(parts: &mut Vec<Part>) {
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts.drain(..) {
        match (joined.last_mut(), &part) {
            (
                Some(Part { content: Content::Text(before), passing }),
                Part { content: Content::Text(text), passing: others },
            ) if passing.is_empty() && others.is_empty() => {
                before.push('\n');
                before.push_str(text);
            }
            _ => joined.push(part),
        }
    }
    *parts = joined;
}
