//! `POST /api/render`: Markdown to HTML that is safe to show, for the page.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::Builder;
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pulldown_cmark::{Options, Parser, html};
use serde::Serialize;
use serde_json::Value;

use super::{body::JsonBody, error};

#[derive(Serialize)]
struct Rendered {
    html: String,
}

pub(super) async fn render(JsonBody(source): JsonBody) -> Response {
    match source.get("markdown").and_then(Value::as_str) {
        Some(markdown) => Json(Rendered { html: to_safe_html(markdown) }).into_response(),
        None => {
            let message = "`markdown` has to be a text";
            error(StatusCode::BAD_REQUEST, "invalid_request_error", message, Some("markdown"))
        }
    }
}

/// What a model writes is not to be trusted, HTML in it least of all.
fn to_safe_html(markdown: &str) -> String {
    static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
        let mut builder = Builder::default();
        // A picture would tell its server that the answer is being read.
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
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut text = String::new();
    html::push_html(&mut text, Parser::new_ext(markdown, options));
    SANITIZER.clean(&text).to_string()
}

fn is_language(class: &str) -> bool {
    class
        .strip_prefix("language-")
        .is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::to_safe_html;

    #[test]
    fn markdown_is_rendered_and_html_in_it_is_harmless() {
        let html = to_safe_html("**a** `b`\n\n```rust\nlet x = 1 < 2;\n```\n\n| a |\n|---|\n| 1 |");
        assert!(html.contains("<strong>a</strong> <code>b</code>"), "{html}");
        assert!(html.contains("<code class=\"language-rust\">let x = 1 &lt; 2;"), "{html}");
        assert!(html.contains("<table>"), "{html}");
        let bad = to_safe_html(
            "<script>alert(1)</script><img src=x onerror=alert(1)>[x](javascript:alert(1)) <a href=\"data:text/html,x\" onclick=\"x\" style=\"x\">y</a> <code class=\"evil\">z</code>",
        );
        for trace in ["script", "img", "onerror", "onclick", "style", "data:", "evil"] {
            assert!(!bad.contains(trace), "{trace}: {bad}");
        }
    }
}
