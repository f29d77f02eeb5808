//! What the result of a server's tool has for the model.

use registry_core::{Content, ToolResult};
use serde_json::Value;
use toolrack_apis::{Media, MediaKind, MediaSource};

use super::super::parts;

/// How many pictures of one result are looked at.
const MOST: usize = 64;

/// The text of a result, in which what is neither text nor a picture is described, and its pictures.
pub(in super::super) fn text_and_pictures(result: &ToolResult) -> (String, Vec<Media>) {
    let mut pictures = Vec::new();
    let mut texts = vec![result.value_for_model().into_owned()];
    let mut left_out = 0_usize;
    for content in &result.content {
        match picture(content) {
            Some(picture) if pictures.len() < MOST => pictures.push(picture),
            Some(_) => left_out += 1,
            None => texts.push(parts::for_model(content)),
        }
    }
    if left_out > 0 {
        texts.push(format!("[{left_out} more pictures]"));
    }
    texts.retain(|text| !text.is_empty());
    (texts.join("\n"), pictures)
}

fn picture(content: &Content) -> Option<Media> {
    let (data, media_type, name) = match content {
        Content::Image { data, mime_type } => (data.clone(), mime_type.clone(), None),
        Content::Resource { resource } => {
            let blob = content.blob()?;
            let media_type = blob.media_type.to_ascii_lowercase();
            if !media_type.starts_with("image/") {
                return None;
            }
            let uri = resource.get("uri").and_then(Value::as_str);
            (blob.base64.to_owned(), media_type, uri.map(str::to_owned))
        }
        _ => return None,
    };
    let media = Media::new(MediaKind::Image, MediaSource::Data(data));
    Some(Media { media_type: Some(media_type), name, ..media })
}
