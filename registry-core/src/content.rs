//! What a tool shows beside its value: pictures, sound, documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A piece of a result that is more than the value. As JSON it is a content block of the Model Context Protocol:
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result>.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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

    /// The text for a model that takes only text: the words, or what there is to see.
    pub fn for_model(&self) -> String {
        let of = |from: &Map<String, Value>, key| from.get(key).and_then(Value::as_str).map(str::to_owned);
        match self {
            Self::Text { text } => text.clone(),
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
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let all = three.iter().chain([&0, &0]).take(3).fold(0, |all, byte| all << 8 | usize::from(*byte));
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = DIGITS.get(all >> shift & 63).filter(|_| at <= three.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

/// Three bytes are four characters of Base64.
fn not_shown(what: &str, mime_type: &str, base64: &str) -> String {
    format!("[{what}, {mime_type}, about {} bytes, not shown here]", base64.len() / 4 * 3)
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
        ] {
            let content: Content = serde_json::from_value(block.clone()).unwrap();
            assert_eq!(serde_json::to_value(&content).unwrap(), block);
        }
        assert!(serde_json::from_value::<Content>(json!({"type": "smell"})).is_err());
    }

    #[test]
    fn g12_bytes_of_any_length_are_base64() {
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in known.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), text);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn a_model_that_only_reads_gets_what_there_is_in_words() {
        let text_of = |block| serde_json::from_value::<Content>(block).unwrap().for_model();
        assert_eq!(
            text_of(json!({"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"})),
            "[image, image/png, about 6 bytes, not shown here]"
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
