//! `GET /api/files/{id}/{name}`: a file, picture or sound that a tool has given to its user.
//!
//! What is in it may come from anywhere, so no browser runs it: pictures and sound are shown without scripts, and all else is saved.

use std::sync::Arc;

use axum::{
    Extension,
    body::Bytes,
    extract::State,
    http::{HeaderName, HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    server::{
        App,
        callers::identity::Identity,
        openapi::Operation,
        requests::{api_error::ApiError, name::Name},
    },
    turn::ResultFile,
};

const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";
/// What is written as it is in the name of a header (RFC 8187).
const IN_HEADER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

pub(in crate::server) fn operation() -> Operation {
    Operation::new(Method::GET, "Tools", "read_file", "A file, picture or sound in the result of a tool")
        .details("The address is in the answer's text, and in `part` of a message in `x_toolrack`. It is for the user of the call, as long as conversations are kept.")
        .path("file", "The file's id, and behind a slash its name, which does not matter.")
        .answers_with(200, "application/octet-stream", "The file, with its own media type.")
        .refuses(404, "The user has no such file, or it is not kept any more (`file_not_found`).")
}

pub(in crate::server) async fn read(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Name(file): Name,
) -> Result<Response, ApiError> {
    let id = file.split('/').next().unwrap_or_default();
    let (user, id) = (identity.caller.user.clone(), id.to_owned());
    let backend = app.backend.for_request(identity.registry.clone(), None);
    let read = async move { backend.result_file(&user, &id).await };
    let size = |file: &Option<Arc<ResultFile>>| file.as_ref().map_or(0, |file| file.bytes.len());
    let file = identity.read(read, size).await?.ok_or_else(|| {
        let message = "there is no such file, or it is not kept any more; let the tool make it again";
        ApiError::not_found("file_not_found", message)
    })?;
    Ok((served(&file.name, &file.media_type), Bytes::from_owner(Shared(file))).into_response())
}

/// A file's bytes, which are sent without a copy.
struct Shared(Arc<ResultFile>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

/// The headers of a file that may have come from anywhere.
pub(in crate::server) fn served(name: &str, media_type: &str) -> [(HeaderName, HeaderValue); 7] {
    let is_shown = ["image/", "audio/"].iter().any(|kind| media_type.starts_with(kind));
    let disposition = if is_shown { "inline" } else { "attachment" };
    let name = utf8_percent_encode(name, IN_HEADER);
    let header = |text: &str, usual| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(usual));
    [
        (header::CONTENT_TYPE, header(media_type, "application/octet-stream")),
        (
            header::CONTENT_DISPOSITION,
            header(&format!("{disposition}; filename*=UTF-8''{name}"), "attachment"),
        ),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600")),
        (header::VARY, HeaderValue::from_static("cookie, authorization")),
    ]
}
