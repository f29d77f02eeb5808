//! Pages with nothing but a message: what came of signing in, or of connecting an account.

use axum::{http::StatusCode, response::Response};

use crate::server::page;

/// What a page says.
pub(in crate::server) struct Message {
    pub(in crate::server) status: StatusCode,
    /// By what the page's languages know it.
    pub(in crate::server) code: &'static str,
    pub(in crate::server) title: &'static str,
    pub(in crate::server) text: String,
    /// What the text names, for the other languages.
    pub(in crate::server) about: String,
    /// Where a person can begin again.
    pub(in crate::server) again: Option<String>,
}

impl Message {
    /// The page, for who asked for this path.
    pub(in crate::server) fn at(self, path: &str) -> Response {
        let Self { status, code, title, text, about, again } = self;
        let again = again.map(|to| format!("<p><a href=\"{}\">Start again</a></p>", escaped(&to)));
        let main = format!(
            "  <main class=\"connect\" lang=\"en\" data-code=\"{code}\" data-about=\"{}\"><h1>{title}</h1><p>{}</p>{}</main>\n",
            escaped(&about),
            escaped(&text),
            again.unwrap_or_default()
        );
        let mut response = page::message(&main, path);
        *response.status_mut() = status;
        response
    }
}

/// As text or in a quoted attribute of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn what_others_have_written_is_no_html() {
        let message = Message {
            status: StatusCode::FORBIDDEN,
            code: "sign_in_refused",
            title: "Not signed in",
            text: "It said <script>.".to_owned(),
            about: "\"><script>".to_owned(),
            again: None,
        };
        let response = message.at("/sign-in/callback");
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        let page =
            String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap();
        assert!(page.contains("data-about=\"&quot;&gt;&lt;script&gt;\""), "{page}");
        assert!(page.contains("<p>It said &lt;script&gt;.</p>"), "{page}");
    }
}
