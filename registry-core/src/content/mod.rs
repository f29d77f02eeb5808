//! The parts of a result: pictures, sound, files, tables, formatted text.

mod bounds;
mod media;
mod stream;
mod table;

use base64::{Engine, prelude::BASE64_STANDARD};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use bounds::{check, described};
use media::text_of;
pub use media::{Audio, Blob, File, Image};
pub(crate) use stream::collect;
pub use stream::{Streamed, StreamedPart};
pub use table::{Markdown, Table, cell_text};

/// A part of a result that is more than the value. As JSON it is a content block of the Model Context Protocol, or a `table` or `markdown`,
/// which the protocol does not have:
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result>.
///
/// A tool makes one with [`Image`], [`Audio`], [`File`], [`Table`] and [`Markdown`], each of which it may also return.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// Its bytes in Base64.
        data: String,
        /// Its media type, such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Its bytes in Base64.
        data: String,
        /// Its media type, such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A document that comes along, whole.
    Resource {
        /// `{"uri", "mimeType", "text"}`, or with `blob` in Base64 in place of `text`.
        resource: Map<String, Value>,
    },
    /// Where a document is.
    ResourceLink {
        /// `uri`, `name`, and what else is known: `title`, `description`, `mimeType`, `size`.
        #[serde(flatten)]
        link: Map<String, Value>,
    },
    /// Columns and rows.
    Table(Table),
    /// Formatted text.
    Markdown {
        /// The text, in Markdown.
        text: String,
    },
}

/// What a tool returns as a part of its result, and not as a value.
pub trait Part: Into<Content> {
    /// The schema of the same as a value, where it can be one.
    fn value_schema() -> Option<Value> {
        None
    }
}

impl Part for Content {}
impl Part for Image {}
impl Part for Audio {}
impl Part for File {}
impl Part for Markdown {}

impl Part for Table {
    fn value_schema() -> Option<Value> {
        Some(Self::schema())
    }
}

impl Content {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A picture, by its bytes.
    ///
    /// ```
    /// use registry_core::{Content, ToolResult};
    ///
    /// let result = ToolResult::new("The front door.").with_content(Content::image("PNG", "image/png"));
    /// assert_eq!(result.content, [Content::Image { data: "UE5H".into(), mime_type: "image/png".into() }]);
    /// ```
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image { data: base64(bytes.as_ref()), mime_type: mime_type.into() }
    }

    /// Sound, by its bytes.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio { data: base64(bytes.as_ref()), mime_type: mime_type.into() }
    }

    /// The text for a model that takes only text: the words, or what there is to see.
    pub fn for_model(&self) -> String {
        let of = |from: &Map<String, Value>, key| text_of(from, key).map(str::to_owned);
        match self {
            Self::Text { text } | Self::Markdown { text } => text.clone(),
            Self::Table(table) => table.to_short_csv(),
            Self::Image { data, mime_type } => not_shown("image", mime_type, data),
            Self::Audio { data, mime_type } => not_shown("sound", mime_type, data),
            Self::Resource { resource } => of(resource, "text").unwrap_or_else(|| {
                let uri = of(resource, "uri").unwrap_or_default();
                let mime_type = of(resource, "mimeType").unwrap_or_default();
                not_shown(&uri, &mime_type, &of(resource, "blob").unwrap_or_default())
            }),
            Self::ResourceLink { link } => {
                let uri = of(link, "uri").unwrap_or_default();
                let text = of(link, "name").map_or_else(|| uri.clone(), |name| format!("{name}: {uri}"));
                let size = link.get("size").and_then(Value::as_u64).map(|size| format!("{size} bytes"));
                let known: Vec<String> = of(link, "mimeType").into_iter().chain(size).collect();
                if known.is_empty() { text } else { format!("{text} ({})", known.join(", ")) }
            }
        }
    }
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// How many bytes are behind a Base64 text: three for four characters.
fn base64_length(base64: &str) -> usize {
    let characters = base64.trim_end().trim_end_matches('=').len();
    characters / 4 * 3 + (characters % 4).saturating_sub(1)
}

fn not_shown(what: &str, mime_type: &str, base64: &str) -> String {
    format!("[{what}, {mime_type}, {} bytes, not shown here]", base64_length(base64))
}

/// The schema of the parts of a result as they go over a wire.
///
/// [`Content`] has none by itself: as what a tool returns it is no value.
pub(crate) fn list_schema(_: &mut SchemaGenerator) -> Schema {
    let text = || serde_json::json!({"type": "string"});
    let block = |kind: &str, required: &[&str], properties: Value| {
        let mut all = Map::from_iter([("type".to_owned(), serde_json::json!({"const": kind}))]);
        all.extend(properties.as_object().cloned().unwrap_or_default());
        let required: Vec<&str> = ["type"].iter().chain(required).copied().collect();
        serde_json::json!({"type": "object", "properties": all, "required": required})
    };
    let bytes =
        serde_json::json!({"data": {"type": "string", "contentEncoding": "base64"}, "mimeType": text()});
    let words = serde_json::json!({"text": text()});
    let blocks = [
        block("text", &["text"], words.clone()),
        block("markdown", &["text"], words),
        block("image", &["data", "mimeType"], bytes.clone()),
        block("audio", &["data", "mimeType"], bytes),
        block("resource", &["resource"], serde_json::json!({"resource": {"type": "object"}})),
        block("resource_link", &["uri"], serde_json::json!({"uri": text()})),
        block("table", &["columns", "rows"], Table::schema().get("properties").cloned().unwrap_or_default()),
    ];
    json_schema!({"type": "array", "items": {"oneOf": blocks}})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m8_a_block_is_read_and_written_as_the_protocol_has_it() {
        for block in [
            json!({"type": "text", "text": "words"}),
            json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
            json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
            json!({"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "a"}}),
            json!({"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3}),
            json!({"type": "table", "columns": ["a", "b"], "rows": [[1, null], ["x", true]]}),
            json!({"type": "markdown", "text": "**a**"}),
        ] {
            let content: Content = serde_json::from_value(block.clone()).unwrap();
            assert_eq!(serde_json::to_value(&content).unwrap(), block);
        }
        assert!(serde_json::from_value::<Content>(json!({"type": "smell"})).is_err());
    }

    #[test]
    fn a_model_that_only_reads_gets_what_there_is_in_words() {
        let text_of = |block| serde_json::from_value::<Content>(block).unwrap().for_model();
        assert_eq!(
            text_of(json!({"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"})),
            "[image, image/png, 6 bytes, not shown here]"
        );
        assert_eq!(
            text_of(json!({"type": "resource", "resource": {"uri": "file:///a", "text": "its text"}})),
            "its text"
        );
        assert_eq!(
            text_of(json!({"type": "resource_link", "uri": "file:///a", "name": "a"})),
            "a: file:///a"
        );
        assert_eq!(
            text_of(json!({"type": "resource_link", "uri": "file:///a", "mimeType": "text/csv", "size": 7})),
            "file:///a (text/csv, 7 bytes)"
        );
    }
}
