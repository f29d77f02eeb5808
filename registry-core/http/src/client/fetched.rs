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
        let header = self.content_type.as_deref().unwrap_or_default();
        let encoding = value_of("charset", header)
            .or_else(|| self.named_inside())
            .unwrap_or(if str::from_utf8(&self.body).is_ok() { UTF_8 } else { WINDOWS_1252 });
        encoding.decode(&self.body).0
    }

    /// The encoding that a page of HTML or XML names in its first lines.
    fn named_inside(&self) -> Option<&'static Encoding> {
        let media_type = self.media_type();
        if !(media_type.is_empty() || media_type.ends_with("html") || media_type.ends_with("xml")) {
            return None;
        }
        let head = String::from_utf8_lossy(self.body.get(..PRESCAN).unwrap_or(&self.body));
        let key = if head.starts_with("<?xml") { "encoding" } else { "charset" };
        // That the name could be read shows that it is not UTF-16.
        value_of(key, &head).map(Encoding::output_encoding)
    }
}

/// The encoding in `key=value`, quoted or not.
fn value_of(key: &str, text: &str) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let (_, rest) = text.split_once(key)?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
    Encoding::for_label(value.get(..end.unwrap_or(value.len()))?.as_bytes())
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
            ("text/html", "<meta charset=utf-16>café".as_bytes()),
            ("", b"<?xml version='1.0' encoding='latin1'?>caf\xe9"),
            ("text/plain", "charset=latin1 café".as_bytes()),
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
