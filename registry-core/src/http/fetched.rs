//! What a fetch brought back.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use reqwest::{StatusCode, Url};

/// How far into a page its encoding is looked for, as browsers do.
const PRESCAN: usize = 1024;

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Where it came from, after redirects.
    pub url: Url,
    /// The status. A fetch that was answered `404` is no error of the client.
    pub status: StatusCode,
    /// The header `Content-Type`, as sent.
    pub content_type: Option<String>,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

impl Fetched {
    /// The content type without its parameters, in lower case; empty where none was sent.
    pub fn media_type(&self) -> String {
        let full = self.content_type.as_deref().unwrap_or_default();
        full.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The body as text, in the encoding that its first bytes, the header or the page itself names; where none does, UTF-8
    /// if it is that, else Windows-1252. What cannot be read becomes `�`.
    pub fn text(&self) -> Cow<'_, str> {
        let head = self.body.get(..PRESCAN).unwrap_or(&self.body);
        let encoding = self
            .content_type
            .as_deref()
            .and_then(|header| named_encoding(header.as_bytes()))
            .or_else(|| named_encoding(head))
            .unwrap_or(if str::from_utf8(&self.body).is_ok() { UTF_8 } else { WINDOWS_1252 });
        encoding.decode(&self.body).0
    }
}

/// The encoding in `charset=…` (header, HTML) or `encoding=…` (XML).
fn named_encoding(text: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    ["charset", "encoding"].into_iter().find_map(|key| {
        let (_, rest) = text.split_once(key)?;
        let value = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
        Encoding::for_label(value.get(..end.unwrap_or(value.len()))?.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: &str, body: &[u8]) -> Fetched {
        Fetched {
            url: Url::parse("http://example.org/").unwrap(),
            status: StatusCode::OK,
            content_type: Some(content_type.into()),
            body: body.into(),
        }
    }

    #[test]
    fn the_encoding_is_found() {
        for (content_type, body) in [
            ("text/html; charset=ISO-8859-1", b"caf\xe9".as_slice()),
            ("text/html; charset=\"utf-8\"", "café".as_bytes()),
            ("text/html", b"<meta charset=latin1><p>caf\xe9"),
            (
                "text/html",
                b"<meta http-equiv=content-type content='text/html; charset = windows-1252'>caf\xe9",
            ),
            ("text/xml", b"<?xml version='1.0' encoding='ISO-8859-15'?>caf\xe9"),
            ("text/plain", "café".as_bytes()),
            ("text/plain", b"caf\xe9"),
            ("text/plain; charset=nonsense", "café".as_bytes()),
            ("text/plain; charset=latin1", b"\xef\xbb\xbfcaf\xc3\xa9"),
        ] {
            let page = page(content_type, body);
            assert!(page.text().ends_with("café"), "{content_type}: {}", page.text());
        }
    }

    #[test]
    fn parameters_are_no_part_of_the_media_type() {
        assert_eq!(page("Text/HTML ; charset=utf-8", b"").media_type(), "text/html");
    }
}
