//! `GET /` and `GET /admin`: the chat page, the console of admins, and their files, which are part of the program.
//!
//! Files have the page's version in their address, so that a browser never asks again for one that it has, and never mixes two versions.
//! A debug build reads them from their folder: a changed file is seen at the next reload.

use std::{collections::BTreeMap, io::Read, sync::LazyLock};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
};
use flate2::read::GzDecoder;
use parking_lot::Mutex;
use rust_embed::EmbeddedFile;
use tower_http::compression::{
    CompressionLayer,
    predicate::{DefaultPredicate, NotForContentType, Predicate},
};

use super::{
    openapi::Operation,
    page_documents::{CHAT, CONNECT, CONSOLE, Document, Files, MESSAGE, VERSION},
    requests::{api_error::ApiError, name::Name},
    routes::Routes,
};

/// Nothing but this server's own files, and no script or style in the page itself.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; \
    media-src blob:; connect-src 'self'; frame-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// The frame that draws diagrams: it may reach nothing, and has no origin, so that nothing of the page is open to it.
const FRAME_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

const REVALIDATE: &str = "no-cache";
const FOREVER: &str = "public, max-age=31536000, immutable";

/// Addresses that cannot have the version in them: what they are called is kept by browsers.
const FIXED: [(&str, &str); 3] = [
    ("/icon.svg", "icon.svg"),
    ("/worker.js", "worker.js"),
    ("/manifest.webmanifest", "manifest.webmanifest"),
];

static INDEX: LazyLock<String> = LazyLock::new(|| CHAT.page());
static ADMIN: LazyLock<String> = LazyLock::new(|| CONSOLE.page());
static CONNECTING: LazyLock<String> = LazyLock::new(|| CONNECT.page());
/// For paths without a folder, within one, and within two.
static MESSAGES: LazyLock<[String; 3]> =
    LazyLock::new(|| ["", "../", "../../"].map(|root| Document { root, ..MESSAGE }.page()));

/// Whether a request is for a file of the page: the same for everybody, as it is in the program.
pub(super) fn is_file(method: &Method, path: &str) -> bool {
    method == Method::GET && path.starts_with("/page/")
}

pub(super) fn routes() -> Routes {
    let small = CompressionLayer::new()
        .compress_when(DefaultPredicate::new().and(NotForContentType::const_new("font/")));
    let routes = Routes::new()
        .add(
            "/",
            serve_index,
            Operation::new(Method::GET, "Server", "page", "The chat page")
                .answers_with(200, kind("index.html"), "The page.")
                .answers_nothing(304, "The page has not changed."),
        )
        .add(
            "/admin",
            serve_admin,
            Operation::new(Method::GET, "Server", "console", "The console of admins")
                .details("It is the same for everybody, and shows what the routes of admins answer.")
                .answers_with(200, kind("admin.html"), "The page.")
                .answers_nothing(304, "The page has not changed.")
                .answers_nothing(307, "The page has no slash at its end."),
        )
        .add(
            "/page/{*file}",
            serve_file,
            Operation::new(Method::GET, "Server", "page_file", "A file of the chat page")
                .path(
                    "file",
                    "The page's version, as the page names it, and behind a slash the name of the file.",
                )
                .answers_with(200, "*/*", "The file.")
                .refuses(404, "The page has no such file."),
        );
    FIXED
        .iter()
        .fold(routes, |routes, &(address, path)| {
            let id = format!("page_{}", path.replace('.', "_"));
            let operation = Operation::new(Method::GET, "Server", id, format!("`{path}` of the chat page"))
                .answers_with(200, kind(path), "The file.");
            let serve = async move |headers: HeaderMap| answer(path, &headers, REVALIDATE);
            routes.add(address, serve, operation)
        })
        .behind(|router| router.layer(small))
}

async fn serve_index(headers: HeaderMap) -> Response {
    serve(&CHAT, &INDEX, &headers)
}

async fn serve_admin(uri: Uri, headers: HeaderMap) -> Response {
    without_slash(&uri).unwrap_or_else(|| serve(&CONSOLE, &ADMIN, &headers))
}

pub(super) async fn serve_connect(uri: Uri, headers: HeaderMap) -> Response {
    without_slash(&uri).unwrap_or_else(|| serve(&CONNECT, &CONNECTING, &headers))
}

/// Where a page is whose address ends with a slash: addresses in it are relative to that.
fn without_slash(uri: &Uri) -> Option<Response> {
    let name = uri.path().strip_suffix('/')?.rsplit('/').next()?;
    Some(Redirect::temporary(&format!("../{name}")).into_response())
}

/// A page with nothing but a message, for who asked for this path.
pub(super) fn message(main: &str, path: &str) -> Response {
    let depth = path.matches('/').count().saturating_sub(1);
    let [here, ..] = &*MESSAGES;
    let page = MESSAGES.get(depth).unwrap_or(here);
    let mut response = page.replace("<!-- message -->\n", main).into_response();
    about("message.html", "no-store", response.headers_mut());
    response
}

fn serve(document: &Document, made: &LazyLock<String>, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", *VERSION);
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    if known && !cfg!(debug_assertions) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let page = if cfg!(debug_assertions) { document.page() } else { String::clone(made) };
    let mut response = ([(header::ETAG, tag)], page).into_response();
    about("index.html", REVALIDATE, response.headers_mut());
    response
}

async fn serve_file(Name(file): Name, headers: HeaderMap) -> Response {
    let (version, path) = file.split_once('/').unwrap_or_default();
    // A page of the version before may still ask for files by its own.
    let keep = if version == *VERSION && !cfg!(debug_assertions) { FOREVER } else { REVALIDATE };
    answer(path, &headers, keep)
}

/// A file, or the file compressed as it lies there.
fn answer(path: &str, headers: &HeaderMap, keep: &'static str) -> Response {
    let mut response = match (Files::get(path), Files::get(&format!("{path}.gz"))) {
        (Some(file), _) if path.ends_with(".js") && !path.starts_with("vendor/") => {
            without_comments(&String::from_utf8_lossy(&file.data)).into_response()
        }
        (Some(file), _) => file.data.into_response(),
        (None, Some(packed)) if takes_gzip(headers) => {
            ([(header::CONTENT_ENCODING, "gzip")], packed.data).into_response()
        }
        (None, Some(packed)) => match unpacked(&packed) {
            Ok(content) => content.into_response(),
            Err(error) => {
                return ApiError::internal(format!("`{path}` of the page: {error}")).into_response();
            }
        },
        (None, None) => match style_sheet(path) {
            Some(style) => style.into_response(),
            None => {
                let message = format!("the page has no file `{path}`; reload it");
                return ApiError::not_found("page_file_not_found", message).into_response();
            }
        },
    };
    about(path, keep, response.headers_mut());
    response
}

/// A script of ours without the lines that are comments, which are a fifth of what a phone would load. The others keep their numbers.
fn without_comments(script: &str) -> String {
    let mut is_within = false;
    let mut lean = String::with_capacity(script.len());
    for line in script.lines() {
        let words = line.trim();
        let is_comment = is_within || words.starts_with("//") || {
            let end = words.strip_prefix("/**").map(|rest| rest.split_once("*/"));
            is_within = end.is_some_and(|end| end.is_none());
            end.is_some_and(|end| end.is_none_or(|(_, code)| code.is_empty()))
        };
        if is_within && words.ends_with("*/") {
            is_within = false;
        }
        if !is_comment {
            lean.push_str(line);
        }
        lean.push('\n');
    }
    lean
}

/// The styles of a folder as one, in the order of their names.
fn style_sheet(path: &str) -> Option<String> {
    let folder = format!("{}/", path.strip_suffix(".css")?);
    let mut files: Vec<_> =
        Files::iter().filter(|file| file.starts_with(&folder) && file.ends_with(".css")).collect();
    files.sort_unstable();
    let texts = files.iter().filter_map(|file| Files::get(file)).map(|file| file.data);
    let style: String = texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
    Some(style).filter(|style| !style.is_empty())
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|accepted| accepted.to_str().ok())
        .is_some_and(|accepted| accepted.contains("gzip"))
}

/// A file as it is, unpacked once for all who ask.
fn unpacked(packed: &EmbeddedFile) -> std::io::Result<Bytes> {
    static UNPACKED: Mutex<BTreeMap<[u8; 32], Bytes>> = Mutex::new(BTreeMap::new());
    let mut unpacked = UNPACKED.lock();
    if let Some(content) = unpacked.get(&packed.metadata.sha256_hash()) {
        return Ok(content.clone());
    }
    let mut content = Vec::new();
    GzDecoder::new(packed.data.as_ref()).read_to_end(&mut content)?;
    let content = Bytes::from(content);
    unpacked.insert(packed.metadata.sha256_hash(), content.clone());
    Ok(content)
}

fn about(path: &str, keep: &'static str, headers: &mut HeaderMap) {
    let policy = match path {
        "diagram.html" => FRAME_POLICY,
        _ if path.ends_with(".html") || path == "worker.js" => PAGE_POLICY,
        // What is no document has little use for one, and there are many of them.
        _ => "default-src 'none'; sandbox",
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CONTENT_TYPE, kind(path)),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, keep),
        (header::VARY, "accept-encoding"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The content type of a file.
fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("woff2") => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b17_the_page_names_its_files_and_each_of_them_is_there() {
        for (document, files) in [(&CHAT, 20), (&CONSOLE, 20), (&CONNECT, 6)] {
            let page = document.page();
            let begin = format!("{}page/{}/", document.root, *VERSION);
            let named: Vec<&str> =
                page.split('"').filter_map(|word| word.strip_prefix(begin.as_str())).collect();
            assert!(named.len() > files, "{page}");
            for path in named {
                assert_eq!(answer(path, &HeaderMap::new(), FOREVER).status(), StatusCode::OK, "{path}");
            }
            assert!(!page.contains("<!-- ") && !page.contains('{'), "{page}");
            let said = page.split("data-languages=\"").nth(1).and_then(|rest| rest.split('"').next());
            let languages: Vec<&str> = said.unwrap_or_default().split(' ').collect();
            assert!(languages.contains(&"de") && languages.contains(&"en"), "{page}");
            for language in &languages {
                assert!(Files::get(&format!("languages/{language}.js")).is_some(), "{language}");
            }
            assert_eq!(Files::iter().filter(|file| file.starts_with("languages/")).count(), languages.len());
        }
    }

    #[test]
    fn b17_scripts_are_sent_without_their_comments_and_with_all_of_their_code() {
        let script = "// A page.\n\n/**\n * Adds.\n * @param {number} a\n */\nexport const add = (/** @type {number} */ a) => a + 1; // code\n  \
            /** One line. */\n  /** @type {any} */ (window).add = add;\n  // the end\nadd('/** no comment */');";
        let lean = without_comments(script);
        let kept = "export const add = (/** @type {number} */ a) => a + 1; // code\n\n  /** @type {any} */ (window).add = add;\n\n\
            add('/** no comment */');\n";
        assert_eq!(lean.trim_start(), kept);
        assert_eq!(lean.lines().count(), script.lines().count());
        for path in Files::iter().filter(|path| path.ends_with(".js") && !path.starts_with("vendor/")) {
            let file = Files::get(&path).unwrap();
            let script = String::from_utf8_lossy(&file.data);
            let lean = without_comments(&script);
            for (line, kept) in script.lines().zip(lean.lines()).filter(|(line, kept)| line != kept) {
                let is_comment = ["//", "/**", "*"].iter().any(|begin| line.trim_start().starts_with(begin));
                assert!(kept.is_empty() && is_comment, "{path}: {line}");
            }
            assert_eq!(lean.lines().count(), script.lines().count(), "{path}");
            assert!(!lean.lines().any(|line| line.trim_start().starts_with("//")), "{path}");
        }
    }

    #[tokio::test]
    async fn b17_a_page_whose_address_ends_with_a_slash_is_the_one_without() {
        for (address, place) in [("/admin/", "../admin"), ("/rack/connect/a%20b/?from=chat", "../a%20b")] {
            let (admin, connect) = (
                serve_admin(Uri::from_static(address), HeaderMap::new()).await,
                serve_connect(Uri::from_static(address), HeaderMap::new()).await,
            );
            for response in [admin, connect] {
                assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT, "{address}");
                assert_eq!(response.headers()[header::LOCATION], place, "{address}");
            }
        }
        for address in ["/admin", "/connect/tracker"] {
            let response = serve_connect(Uri::from_static(address), HeaderMap::new()).await;
            assert_eq!(response.status(), StatusCode::OK, "{address}");
        }
    }

    #[tokio::test]
    async fn b17_a_message_finds_its_files_from_each_path() {
        for (path, root) in
            [("/sign-in", ""), ("/sign-in/callback", "../"), ("/connections/callback/", "../../")]
        {
            let response = message("<main>said</main>", path);
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
            let page = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let page = String::from_utf8(page.to_vec()).unwrap();
            let begin = format!("{root}page/{}/", *VERSION);
            let files: Vec<&str> =
                page.split('"').filter_map(|word| word.strip_prefix(begin.as_str())).collect();
            assert!(
                ["message.js", "styles.css", "connect.css"].iter().all(|file| files.contains(file)),
                "{page}"
            );
            for file in files {
                assert_eq!(answer(file, &HeaderMap::new(), FOREVER).status(), StatusCode::OK, "{file}");
            }
            assert!(
                page.contains("<main>said</main>") && !page.contains("<!-- ") && !page.contains('{'),
                "{page}"
            );
        }
    }

    #[test]
    fn b17_the_chat_loads_nothing_of_the_console() {
        assert!(!CHAT.page().contains("/console/"), "{}", CHAT.page());
        assert!(CONSOLE.page().contains("/console/main.js"), "{}", CONSOLE.page());
    }

    #[test]
    fn b17_a_compressed_file_is_also_for_clients_that_read_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(
            answer("vendor/katex.js", &headers, FOREVER).headers().get(header::CONTENT_ENCODING),
            None
        );
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br, gzip"));
        let packed = answer("vendor/katex.js", &headers, FOREVER);
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(packed.headers()[header::CONTENT_TYPE], kind("a.js"));
        assert_eq!(answer("../page.rs", &headers, FOREVER).status(), StatusCode::NOT_FOUND);
        assert_eq!(answer("vendor/none.js", &headers, FOREVER).status(), StatusCode::NOT_FOUND);
    }
}
