//! `GET /`: the chat page and its files, which are part of the program.

use axum::{
    http::{Method, header},
    response::IntoResponse,
};

use super::{openapi::Operation, routes::Routes};

/// Nothing but this server's own files, and no script in the page itself.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! files {
    ($($path:literal: $file:literal as $kind:literal,)*) => {
        &[$(($path, $kind, include_str!(concat!("page/", $file)))),*]
    };
}

/// Address, content type, content.
const FILES: &[(&str, &str, &str)] = files! {
    "/": "index.html" as "text/html; charset=utf-8",
    "/page.css": "page.css" as "text/css; charset=utf-8",
    "/icon.svg": "icon.svg" as "image/svg+xml",
    "/page.js": "page.js" as "text/javascript; charset=utf-8",
    "/answer.js": "answer.js" as "text/javascript; charset=utf-8",
    "/api.js": "api.js" as "text/javascript; charset=utf-8",
    "/call.js": "call.js" as "text/javascript; charset=utf-8",
    "/documents.js": "documents.js" as "text/javascript; charset=utf-8",
    "/dom.js": "dom.js" as "text/javascript; charset=utf-8",
    "/drop.js": "drop.js" as "text/javascript; charset=utf-8",
    "/key.js": "key.js" as "text/javascript; charset=utf-8",
    "/history.js": "history.js" as "text/javascript; charset=utf-8",
    "/markdown.js": "markdown.js" as "text/javascript; charset=utf-8",
    "/scroll.js": "scroll.js" as "text/javascript; charset=utf-8",
    "/sse.js": "sse.js" as "text/javascript; charset=utf-8",
    "/storage.js": "storage.js" as "text/javascript; charset=utf-8",
    "/tools.js": "tools.js" as "text/javascript; charset=utf-8",
    "/transfer.js": "transfer.js" as "text/javascript; charset=utf-8",
    "/welcome.js": "welcome.js" as "text/javascript; charset=utf-8",
};

pub(super) fn routes() -> Routes {
    FILES.iter().fold(Routes::new(), |routes, &(path, kind, content)| {
        let file = move || async move {
            let headers = [
                (header::CONTENT_TYPE, kind),
                (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (header::REFERRER_POLICY, "no-referrer"),
                // A new build has new files under the same names.
                (header::CACHE_CONTROL, "no-cache"),
            ];
            (headers, content).into_response()
        };
        routes.add(path, file, operation(path, kind))
    })
}

fn operation(path: &str, kind: &'static str) -> Operation {
    let (id, summary) = match path {
        "/" => ("page".to_owned(), "The chat page".to_owned()),
        file => (format!("page{}", file.replace(['/', '.'], "_")), format!("`{file}` of the chat page")),
    };
    Operation::new(Method::GET, "Server", id, summary).answers_with(200, kind, "The file.")
}
