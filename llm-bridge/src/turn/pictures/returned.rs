//! What the result of a server's tool has for the model.

use registry_core::{Content, ToolResult};
use serde_json::{Map, Value};
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
            let of = |key| text(resource, key);
            let media_type = of("mimeType").filter(|name| name.starts_with("image/"))?;
            (of("blob")?, media_type, of("uri"))
        }
        _ => return None,
    };
    let media = Media::new(MediaKind::Image, MediaSource::Data(data));
    Some(Media { media_type: Some(media_type), name, ..media })
}

fn text(from: &Map<String, Value>, key: &str) -> Option<String> {
    from.get(key).and_then(Value::as_str).map(str::to_owned)
}
