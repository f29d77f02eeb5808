//! The JSON body of a request, or the error to answer with.

use std::sync::{Arc, LazyLock};

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header},
};
use registry_core::UserPlaces;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolrack_apis::json::values_in;

use super::api_error::ApiError;
use crate::server::{MAX_BODY, callers::identity::Identity, transport::handover::Requests};

const KIND: &str = "invalid_request_error";

/// What a route reads from a JSON object.
pub(in crate::server) trait Body: DeserializeOwned {
    /// What to send, for the error when something else was sent.
    const EXAMPLE: &str;
}

impl Body for Value {
    const EXAMPLE: &str = "a JSON object";
}

/// A JSON object that was sent as such. serde alone would also read a struct from an array.
pub(in crate::server) struct JsonBody<T>(pub(in crate::server) T);

impl<T: Body + Send + 'static, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        // A form of another page cannot send JSON without a preflight request.
        if !is_sent_as(request.headers(), "application/json") {
            let message = "send the request as `Content-Type: application/json`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, KIND, message));
        }
        let identity = request.extensions().get::<Identity>().cloned();
        let sender = Sender::of(&request);
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|fault| ApiError::new(fault.status(), KIND, not_read(&fault)).param("body"))?;
        let size = bytes.len();
        let (values, body) = decode(sender, size, move || object(&bytes)).await??;
        // They are there until the request is answered, such as in the arguments of a call that waits.
        identity.map_or(Ok(()), |identity| identity.hold(values * VALUE_BYTES))?;
        Ok(Self(body))
    }
}

/// A larger body is decoded beside the runtime, in bytes.
const SMALL_BODY: usize = 256 * 1024;
/// How many of those are decoded at once; each takes a multiple of its size in memory.
const AT_ONCE: usize = 2;
/// How many of these are of one user.
const OF_ONE_USER: usize = 1;

/// Who has sent what is decoded.
#[derive(Debug, Clone, Default)]
pub(in crate::server) struct Sender {
    pub(in crate::server) tenant: String,
    pub(in crate::server) user: String,
    /// The requests of the connection, which have the user's share of what is under way.
    pub(in crate::server) _requests: Option<Arc<Requests>>,
}

impl Sender {
    /// Of a request that has come to a route; where anybody may send it, nobody's.
    pub(in crate::server) fn of(request: &Request) -> Self {
        request.extensions().get::<Identity>().map(Identity::sender).unwrap_or_default()
    }
}

/// The places in which large requests are decoded.
static DECODING: LazyLock<UserPlaces> = LazyLock::new(decoding);

fn decoding() -> UserPlaces {
    UserPlaces::new(OF_ONE_USER).among(AT_ONCE)
}

/// Decodes in a place of its own, which has its user's share of what is under way until it ends.
async fn decode_large<T: Send + 'static>(
    places: &UserPlaces,
    sender: Sender,
    decode: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let (tenant, user) = (sender.tenant.clone(), sender.user.clone());
    let work = move || {
        let _sender = sender;
        decode()
    };
    let failed = |_| ApiError::internal("the request could not be read; see the server's log");
    places.work((&tenant, &user), work).await.map_err(failed)
}

/// Decodes a request of this many bytes, a large one on a thread of its own.
pub(in crate::server) async fn decode<T: Send + 'static>(
    sender: Sender,
    size: usize,
    decode: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if size <= SMALL_BODY { Ok(decode()) } else { decode_large(&DECODING, sender, decode).await }
}

/// How many values the JSON of a request may consist of: each takes up to a hundred times its two bytes in memory.
const MAX_VALUES: usize = 500_000;

/// What a value takes in memory, in bytes.
pub(in crate::server) const VALUE_BYTES: usize = size_of::<Value>();

/// Refuses a JSON text of very many values before they are made; gives how many it has.
pub(in crate::server) fn check_values(json: &[u8]) -> Result<usize, ApiError> {
    let values = values_in(json);
    if values <= MAX_VALUES {
        return Ok(values);
    }
    let message = format!("the request has more than {MAX_VALUES} values; send less at once");
    Err(ApiError::invalid("body", message))
}

/// Reads a JSON object; gives how many values it has, too.
pub(in crate::server) fn object<T: Body>(bytes: &[u8]) -> Result<(usize, T), ApiError> {
    let values = check_values(bytes)?;
    let message = match serde_json::from_slice(bytes) {
        Ok(body @ Value::Object(_)) => match serde_json::from_value(body) {
            Ok(body) => return Ok((values, body)),
            Err(fault) => format!("the request is not valid: {}; send {}", shortened(&fault), T::EXAMPLE),
        },
        Ok(_) => "the request has to be a JSON object".to_owned(),
        Err(fault) => format!("the request is not JSON: {fault}"),
    };
    Err(ApiError::invalid("body", message))
}

/// Whether the content type is this one, whatever its parameters.
pub(in crate::server) fn is_sent_as(headers: &HeaderMap, kind: &str) -> bool {
    let sent_as = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    sent_as.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind)
}

/// How much of what was sent a message repeats, in bytes.
const REPEATED: usize = 400;

/// The message of a fault, which may repeat a value that is as long as the body.
pub(in crate::server) fn shortened(fault: &serde_json::Error) -> String {
    let mut text = fault.to_string();
    if text.len() > REPEATED {
        text.truncate(text.floor_char_boundary(REPEATED));
        text.push('…');
    }
    text
}

/// Why a body could not be read.
pub(in crate::server) fn not_read(fault: &BytesRejection) -> String {
    match fault.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the request is larger than the limit of {} MiB", MAX_BODY >> 20)
        }
        _ => fault.body_text(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Mutex, mpsc},
        time::Duration,
    };

    use tokio::time::timeout;

    use super::*;

    fn of(user: &str) -> Sender {
        Sender { tenant: "default".to_owned(), user: user.to_owned(), _requests: None }
    }

    #[tokio::test]
    async fn a36_what_is_decoded_for_a_client_that_is_gone_keeps_its_place_and_its_share() {
        let decoding = decoding();
        let (requests, (end, ended)) = (Arc::<Requests>::default(), mpsc::channel::<()>());
        let (sender, shared) =
            (Sender { _requests: Some(Arc::clone(&requests)), ..of("ada") }, decoding.clone());
        let (began, mut begins) = tokio::sync::oneshot::channel();
        let gone = tokio::spawn(async move {
            let work = move || {
                let _ = began.send(());
                ended.recv()
            };
            decode_large(&shared, sender, work).await
        });
        (&mut begins).await.unwrap();
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        assert_eq!((decoding.free(), Arc::strong_count(&requests)), (AT_ONCE - 1, 2));
        let next = decode_large(&decoding, of("ada"), || ());
        assert!(timeout(Duration::from_millis(200), next).await.is_err(), "it waits for the one before");
        drop(end);
        assert!(timeout(Duration::from_secs(60), decode_large(&decoding, of("ada"), || ())).await.is_ok());
        assert_eq!((decoding.free(), Arc::strong_count(&requests)), (AT_ONCE, 1));
    }

    #[tokio::test]
    async fn a37_one_user_does_not_have_all_places_for_large_requests() {
        let decoding = decoding();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let held: Vec<_> = (0..20)
            .map(|_| {
                let (decoding, ended) = (decoding.clone(), Arc::clone(&ended));
                tokio::spawn(async move {
                    decode_large(&decoding, of("ada"), move || ended.lock().unwrap().recv())
                        .await
                        .unwrap()
                        .unwrap_err();
                })
            })
            .collect();
        while decoding.free() == AT_ONCE {
            tokio::task::yield_now().await;
        }
        for _ in 0..20 {
            let other = timeout(Duration::from_secs(60), decode_large(&decoding, of("eve"), || 42)).await;
            assert_eq!(other.unwrap().unwrap(), 42);
        }
        drop(end);
        for one in held {
            one.await.unwrap();
        }
    }

    #[test]
    fn a7_the_values_of_a_body_are_counted_before_they_are_made() {
        let body = |item: &str| format!("{{\"a\":[{}]}}", [item].repeat(MAX_VALUES + 1).join(","));
        assert!(object::<Value>(body("{}").as_bytes()).is_err());
        // Texts may be as long as the body.
        assert!(object::<Value>(format!("{{\"a\":\"{}\"}}", ",[".repeat(MAX_VALUES)).as_bytes()).is_ok());
    }
}
