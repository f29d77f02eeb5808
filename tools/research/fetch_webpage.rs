use registry_core::prelude::*;
use toolrack_http::{Fetched, PublicHttpClient};

/// What a page says.
#[output]
#[derive(Debug)]
struct WebPage {
    /// Where it was found, after redirects.
    url: String,
    /// Its title, where it has one.
    title: Option<String>,
    /// Its text: Markdown for a web page, anything else as it is.
    content: String,
    /// Whether the text is longer than what is given.
    truncated: bool,
}

/// Fetch a web page. Use it to read a page whose address you know. Returns its text as Markdown; JSON and plain text as they are.
///
/// Only public addresses are fetched; what else may be is up to the host that provides the [`PublicHttpClient`].
#[tool(
    title = "Fetch a web page",
    version = "1.0.0",
    tags = ["web"],
    reads = untrusted,
    sends = outside,
    timeout = secs(25),
    example = "What does the page https://example.org/news say?" => {"url": "https://example.org/news"}
)]
async fn fetch_webpage(
    ctx: &ToolContext,
    http: Resource<PublicHttpClient>,
    /// Address of the page, such as "https://example.org/news".
    #[arg(length = 1..)]
    url: &str,
    /// Maximum length of the text, in characters.
    #[arg(default = 20_000, range = 500..=200_000)]
    max_characters: u32,
) -> Result<WebPage, ToolError> {
    ctx.status(format!("Fetching {url}"));
    let fetched = http.fetch(url).await?;
    if !fetched.status.is_success() {
        return Err(not_there(&fetched));
    }
    let Some(format) = Format::of(&fetched) else { return Err(not_text(&fetched)) };
    let url = fetched.url.to_string();
    // A large page keeps a thread busy for a moment, which the other calls should not feel.
    let (title, content) = tokio::task::spawn_blocking(move || format.read(&fetched)).await?;
    if content.is_empty() {
        return Err(ToolError::failed(format!("{url} has no text")).with_feedback(
            "The page has no text that can be read; scripts may draw it. Use another source.",
        ));
    }
    let (content, truncated) = cut(content, usize::try_from(max_characters)?);
    Ok(WebPage { url, title, content, truncated })
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Html,
    Text,
}

impl Format {
    /// The format that the server names, or where it names none the one that the body looks like. `None` for what is not text.
    fn of(fetched: &Fetched) -> Option<Self> {
        let media_type = fetched.media_type();
        let (kind, name) = media_type.split_once('/').unwrap_or((&media_type, ""));
        match (kind, name) {
            (_, "html" | "xhtml+xml") => Some(Self::Html),
            ("text", _) => Some(Self::Text),
            ("application", "json" | "xml" | "javascript" | "yaml" | "x-yaml" | "toml" | "x-ndjson") => {
                Some(Self::Text)
            }
            (_, name) if name.ends_with("+json") || name.ends_with("+xml") => Some(Self::Text),
            ("", _) => Self::guess(&fetched.body),
            _ => None,
        }
    }

    fn guess(body: &[u8]) -> Option<Self> {
        let head = String::from_utf8_lossy(body.get(..512).unwrap_or(body)).trim_start().to_ascii_lowercase();
        if head.starts_with("<!doctype html") || head.starts_with("<html") {
            return Some(Self::Html);
        }
        (str::from_utf8(body).is_ok() && !body.contains(&0)).then_some(Self::Text)
    }

    /// The title and the text.
    fn read(self, fetched: &Fetched) -> (Option<String>, String) {
        let text = fetched.text();
        match self {
            Self::Html => {
                let page = toolrack_web::to_markdown(&text, &fetched.url);
                (page.title, page.content)
            }
            Self::Text => (None, text.trim().to_owned()),
        }
    }
}

fn not_there(fetched: &Fetched) -> ToolError {
    let status = fetched.status;
    let error = ToolError::failed(format!("{} answered {status}", fetched.url)).with_feedback(format!(
        "The page could not be read: the server answered {status}. Check the address, or use another source."
    ));
    let passes = status.is_server_error() || status.as_u16() == 429;
    if passes { error.retryable() } else { error }
}

fn not_text(fetched: &Fetched) -> ToolError {
    let media_type = Some(fetched.media_type()).filter(|name| !name.is_empty());
    let media_type = media_type.as_deref().unwrap_or("of no known type");
    ToolError::failed(format!("{} is {media_type}, not text", fetched.url))
        .with_feedback(format!("The page is {media_type}, which cannot be read as text. Use another source."))
}

/// The first so many characters, and whether there were more.
fn cut(mut text: String, characters: usize) -> (String, bool) {
    match text.char_indices().nth(characters) {
        Some((end, _)) => {
            text.truncate(end);
            (text, true)
        }
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use registry_core::ErrorKind;
    use toolrack_http::IpNet;

    use super::*;
    use crate::test_server::serve;

    async fn fetch(url: &str, max_characters: u32) -> Result<WebPage, ToolError> {
        let loopback = IpNet::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let http = Resource::new(PublicHttpClient::builder().allow(loopback).build()?);
        fetch_webpage(&ToolContext::default(), http, url, max_characters).await
    }

    async fn fetched(content_type: &str, body: impl AsRef<[u8]>) -> Result<WebPage, ToolError> {
        let (url, _) = serve("200 OK", content_type, body).await;
        fetch(&url, 500).await
    }

    #[tokio::test]
    async fn a_page_becomes_markdown() {
        let body = b"<html><head><title>Caf\xe9</title></head><nav>no</nav><h1>Men\xfc</h1><a href=/x>More</a></html>";
        let (url, _) = serve("200 OK", "text/html; charset=iso-8859-1", body).await;
        let page = fetch(&url, 500).await.unwrap();
        assert_eq!(page.title.as_deref(), Some("Café"));
        assert_eq!(page.content, format!("# Menü\n\n[More]({url}x)"));
        assert_eq!((page.url, page.truncated), (url, false));
    }

    #[tokio::test]
    async fn text_and_json_stay_as_they_are() {
        for (content_type, body) in [
            ("text/plain", "a < b &amp; c"),
            ("application/json", r#"{"a": [1, 2]}"#),
            ("application/ld+json; charset=utf-8", r#"{"é": 1}"#),
            ("text/markdown", "# Head\n\ntext"),
            ("", "plain"),
        ] {
            let page = fetched(content_type, body).await.unwrap();
            assert_eq!((page.content.as_str(), page.title), (body, None), "{content_type}");
        }
        assert_eq!(fetched("", "\n<!DOCTYPE HTML><p>x").await.unwrap().content, "x");
    }

    #[tokio::test]
    async fn what_is_no_text_is_refused() {
        for (content_type, body) in [("application/pdf", "%PDF-1.7"), ("image/png", "x"), ("", "a\0b")] {
            let error = fetched(content_type, body).await.unwrap_err();
            assert!(error.feedback().contains("cannot be read as text"), "{error}");
        }
        let error = fetched("text/html", "<script>draw()</script>").await.unwrap_err();
        assert!(error.feedback().contains("no text"), "{error}");
    }

    #[tokio::test]
    async fn what_is_too_long_is_cut() {
        let page = fetched("text/plain", "é".repeat(501)).await.unwrap();
        assert_eq!((page.content.chars().count(), page.truncated), (500, true));
        assert!(!fetched("text/plain", "é".repeat(500)).await.unwrap().truncated);
    }

    #[tokio::test]
    async fn a_status_that_is_no_success_is_an_error() {
        let (url, _) = serve("404 Not Found", "text/html", "<h1>Nothing here</h1>").await;
        let error = fetch(&url, 500).await.unwrap_err();
        assert!(error.feedback().contains("404 Not Found") && !error.is_retryable(), "{error}");
        let (url, _) = serve("503 Service Unavailable", "text/html", "").await;
        assert!(fetch(&url, 500).await.unwrap_err().is_retryable());
    }

    #[tokio::test]
    async fn a_private_address_is_refused() {
        let http = Resource::new(PublicHttpClient::new().unwrap());
        let (url, requests) = serve("200 OK", "text/plain", "secret").await;
        let error = fetch_webpage(&ToolContext::default(), http, &url, 500).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(requests.lock().unwrap().is_empty());
    }
}
