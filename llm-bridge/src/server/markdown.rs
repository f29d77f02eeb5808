//! `POST /api/render`: renders Markdown to sanitized HTML, for the page.
//!
//! Deep nesting takes the parsers quadratic time, so there are limits, and text beyond them comes back unrendered.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::Builder;
use axum::{
    Json,
    http::{Method, StatusCode},
};
use pulldown_cmark::{Event, Options, Parser, html};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::{
    api_error::ApiError,
    body::{Body, JsonBody},
    openapi::Operation,
};

/// The longest text that is rendered, in bytes.
const MAX_LENGTH: usize = 256 * 1024;
/// How deep quotes, lists and emphasis may be nested.
const MAX_DEPTH: usize = 50;
/// How many parser events a text may have; missing cells of a table's short rows count.
const MAX_EVENTS: usize = 200_000;
/// How many HTML tags a text may have.
const MAX_TAGS: usize = 1000;
/// The limit of tags times elements, because an unclosed tag may be repeated in every later element.
const MAX_REPEATED: usize = 500_000;

/// Rendering uses a processor; this leaves others free.
static PLACES: Semaphore = Semaphore::const_new(2);

/// A text to render.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Markdown")]
pub(super) struct Source {
    /// The text, of up to 256 KiB.
    markdown: String,
}

impl Body for Source {
    const EXAMPLE: &str = "`{\"markdown\": \"**text**\"}`";
}

/// A text that was rendered.
#[derive(Serialize, JsonSchema)]
pub(super) struct Rendered {
    /// HTML that is safe to show.
    html: String,
}

pub(super) fn operation() -> Operation {
    Operation::new(Method::POST, "Server", "render", "Render Markdown to sanitized HTML")
        .reads::<Source>()
        .answers::<Rendered>(200, "The HTML; text that is nested too deeply comes back in `<pre>`.")
}

pub(super) async fn render(
    JsonBody(Source { markdown }): JsonBody<Source>,
) -> Result<Json<Rendered>, ApiError> {
    if markdown.len() > MAX_LENGTH {
        let message = format!("`markdown` is over {} KiB; show it as plain text", MAX_LENGTH / 1024);
        let error = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message);
        return Err(error.param("markdown"));
    }
    let _place = PLACES.acquire().await;
    let rendered = tokio::task::spawn_blocking(move || to_safe_html(&markdown)).await;
    let html =
        rendered.map_err(|_| ApiError::internal("the text could not be rendered; show it as plain text"))?;
    Ok(Json(Rendered { html }))
}

/// A model's text is untrusted, above all its HTML.
fn to_safe_html(markdown: &str) -> String {
    static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
        let mut builder = Builder::default();
        // An image would reveal to its server that the answer is read.
        builder.rm_tags(["img"]);
        builder.url_schemes(HashSet::from(["http", "https", "mailto"]));
        // The language of a code block.
        builder.allowed_classes(HashMap::new());
        builder.add_tag_attributes("code", ["class"]);
        builder.attribute_filter(|element, attribute, value| match (element, attribute) {
            ("code", "class") => is_language(value).then(|| value.into()),
            _ => Some(value.into()),
        });
        builder
    });
    match bounded_events(markdown) {
        Some(events) => {
            let mut text = String::new();
            html::push_html(&mut text, events.into_iter());
            SANITIZER.clean(&text).to_string()
        }
        None => format!("<pre>{}</pre>", ammonia::clean_text(markdown)),
    }
}

/// The parser's events; `None` beyond the limits.
fn bounded_events(markdown: &str) -> Option<Vec<Event<'_>>> {
    if markdown.lines().any(|line| containers(line) > MAX_DEPTH) {
        return None;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut events = Vec::new();
    let (mut depth, mut elements, mut tags) = (0_usize, 0_usize, 0_usize);
    for event in Parser::new_ext(markdown, options) {
        match &event {
            Event::Start(_) => {
                depth += 1;
                elements += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            // Each `<` may begin a tag, whatever it is in; only a line break is surely none that stays open.
            Event::Html(html) | Event::InlineHtml(html) if !is_line_break(html) => {
                tags += html.matches('<').count();
            }
            _ => {}
        }
        let beyond = depth > MAX_DEPTH
            || events.len() >= MAX_EVENTS
            || tags > MAX_TAGS
            || tags.saturating_mul(elements) > MAX_REPEATED;
        if beyond {
            return None;
        }
        events.push(event);
    }
    Some(events)
}

/// How many quotes and lists a line opens or continues.
fn containers(line: &str) -> usize {
    let mut rest = line.trim_start();
    let mut count = 0;
    loop {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = match rest.strip_prefix('>') {
            Some(after) => Some(after),
            None if number.len() < rest.len() => number.strip_prefix(['.', ')']),
            None => rest.strip_prefix(['-', '+', '*']),
        };
        let Some(after) = after else { return count };
        // A marker of a list needs a space behind it; without one it is emphasis or a rule.
        if !rest.starts_with('>') && !after.starts_with([' ', '\t']) {
            return count;
        }
        count += 1;
        rest = after.trim_start();
    }
}

fn is_line_break(html: &str) -> bool {
    matches!(html, "<br>" | "<br/>" | "<br />")
}

fn is_language(class: &str) -> bool {
    class
        .strip_prefix("language-")
        .is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(c)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::to_safe_html;

    #[test]
    fn markdown_is_rendered_and_html_in_it_is_harmless() {
        let html = to_safe_html("**a** `b`\n\n```rust\nlet x = 1 < 2;\n```\n\n| a |\n|---|\n| 1 |");
        assert!(html.contains("<strong>a</strong> <code>b</code>"), "{html}");
        assert!(html.contains("<code class=\"language-rust\">let x = 1 &lt; 2;"), "{html}");
        assert!(html.contains("<table>"), "{html}");
        let bad = to_safe_html(
            "[x](javascript:alert(1)) <img src=x onerror=alert(1)> <a href=\"data:text/html,x\" onclick=\"x\" \
             style=\"x\">y</a> <code class=\"evil\">z</code>\n\n<script>alert(1)</script>",
        );
        assert!(bad.contains(">x</a>") && bad.contains("<code>z</code>"), "{bad}");
        for trace in ["script", "img", "onerror", "onclick", "style", "data:", "evil"] {
            assert!(!bad.contains(trace), "{trace}: {bad}");
        }
    }
    #[test]
    fn what_would_take_forever_is_shown_as_it_is() {
        let stairs: String = (0..500).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect();
        let open_tags: String = (0..400).map(|number| format!("<b title={number}>")).collect();
        for (name, text, plain) in [
            ("quotes", "> ".repeat(20_000), true),
            ("tight quotes", ">".repeat(100_000), true),
            ("lists", "- ".repeat(20_000), true),
            ("numbers", "1. ".repeat(20_000), true),
            ("stairs", stairs.clone(), true),
            ("stairs and blank lines", stairs + &"\n".repeat(100_000), true),
            ("emphasis", "*a _b ".repeat(20_000) + &"_ *".repeat(20_000), false),
            ("stars", "*".repeat(100_000) + "a" + &"*".repeat(100_000), true),
            ("tags", "<div>".repeat(50_000), true),
            ("inline tags", format!("a {}", "<b>".repeat(50_000)), true),
            ("tags that look closed", "<div title=\"</div>\">".repeat(12_000), true),
            ("open tags and blocks", open_tags + &"\n\nx".repeat(60_000), true),
            ("brackets", "[".repeat(200_000), false),
            ("links", "[a](".repeat(50_000), false),
            ("ticks", (1..600).map(|length| "`".repeat(length) + " ").collect(), false),
            (
                "table",
                format!("{}\n{}\n{}", "|a".repeat(20_000), "|-".repeat(20_000), "|\n".repeat(40_000)),
                false,
            ),
        ] {
            let began = Instant::now();
            let html = to_safe_html(&text);
            let took = began.elapsed();
            assert!(took < Duration::from_secs(5), "{name}: {took:?}");
            assert!(!plain || html.starts_with("<pre>"), "{name}: {}", html.get(..200).unwrap_or_default());
        }
        let html = to_safe_html("- - > 1. a\n\n<sub>b</sub> -- *c*\n***\n");
        assert!(html.contains("<sub>b</sub>") && html.contains("<em>c</em>"), "{html}");
    }
}
