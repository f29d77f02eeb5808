//! What clients accept: the protocol has them name both kinds of answers, and many name one, any or none.

use axum::{
    body::Body,
    extract::Request,
    http::{
        HeaderValue, Method,
        header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::Response,
};
use futures_util::StreamExt;
use sse_stream::SseStream;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Names both kinds in a request that leaves the kind open or names one of them: the library refuses all others. Gives whether the client
/// takes JSON alone.
pub(super) fn complete(request: &mut Request) -> bool {
    let headers = request.headers();
    let named: Vec<String> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .filter(|range| !range.is_empty())
        .collect();
    let names = |ranges: &[&str]| named.iter().any(|range| ranges.contains(&range.as_str()));
    let takes_events = named.is_empty() || names(&["*/*", "text/*", EVENTS]);
    let takes_json = request.method() == Method::POST && names(&[JSON, "application/*"]);
    if takes_events || takes_json {
        let both = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(ACCEPT, both);
    }
    takes_json && !takes_events
}

/// The last message of a stream, which is the answer, for a client that reads no streams.
pub(super) async fn as_json(answer: Response) -> Response {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with(EVENTS)) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let mut events = SseStream::from_bytes_stream(body.into_data_stream()).boxed();
    let mut last = String::new();
    while let Some(Ok(event)) = events.next().await {
        last = event.data.filter(|data| !data.is_empty()).unwrap_or(last);
    }
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b7_a_client_that_leaves_the_kind_open_or_names_one_is_served() {
        let complete = |method: Method, accept: Option<&str>| {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            request.headers_mut().extend(accept.map(|accept| (ACCEPT, accept.parse().unwrap())));
            let is_json_alone = super::complete(&mut request);
            let accept = request.headers().get(ACCEPT).map(|accept| accept.to_str().unwrap().to_owned());
            (accept.is_some_and(|accept| accept.contains(JSON) && accept.contains(EVENTS)), is_json_alone)
        };
        for (accept, served) in [
            (None, (true, false)),
            (Some("*/*"), (true, false)),
            (Some("text/event-stream"), (true, false)),
            (Some("Application/JSON;q=0.9"), (true, true)),
            (Some("application/json, application/mcp+json"), (true, true)),
            (Some("application/json, text/event-stream"), (true, false)),
            (Some("text/html"), (false, false)),
        ] {
            assert_eq!(complete(Method::POST, accept), served, "{accept:?}");
        }
        assert_eq!(complete(Method::GET, Some("application/json")), (false, false));
        assert_eq!(complete(Method::GET, None), (true, false));
    }
}
