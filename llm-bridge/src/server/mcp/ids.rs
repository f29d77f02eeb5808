//! The requests of sessions that run, by their ids.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Weak},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::header::CONTENT_TYPE,
    response::Response,
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use rmcp::model::RequestId;
use serde::{Deserialize, de::IgnoredAny};
use tokio::time::Instant;

use crate::server::{api_error::ApiError, body::decode, identity::Identity};

/// How long an answer that is made may take to be sent, before its id counts as in use.
const SENT_WITHIN: Duration = Duration::from_secs(1);
/// How often to look whether it was sent.
const LOOKED_FOR: Duration = Duration::from_millis(2);

/// A user by tenant and name, the session, and the id of a request. A session that another user names is another.
type Key = ([String; 3], RequestId);

#[derive(Default)]
pub(super) struct RunningIds(Arc<Mutex<HashMap<Key, Weak<Running>>>>);

/// A request that runs, in the extensions of the HTTP request: until it is handled, also where its client has gone away.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "held, not read")]
pub(super) struct Holds(Arc<Running>);

#[derive(Debug)]
#[expect(dead_code, reason = "held, not read")]
struct Running(Arc<Taken>);

/// An id in use, until the answer is sent.
#[derive(derive_more::Debug)]
#[debug("Taken")]
pub(super) struct Taken {
    key: Key,
    all: Arc<Mutex<HashMap<Key, Weak<Running>>>>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

impl RunningIds {
    /// Takes an id; none if another request of the session has it. A client may use an id again as soon as it has the answer, which is
    /// a moment before the answer is over here.
    pub(super) async fn take(
        &self,
        identity: &Identity,
        session: &str,
        id: &RequestId,
    ) -> Option<(Holds, Arc<Taken>)> {
        let whose = [identity.registry.tenant(), &identity.caller.user, session].map(str::to_owned);
        let key = (whose, id.clone());
        let until = Instant::now() + SENT_WITHIN;
        loop {
            match self.0.lock().entry(key.clone()) {
                Entry::Vacant(free) => {
                    let taken = Arc::new(Taken { key, all: Arc::clone(&self.0) });
                    let running = Arc::new(Running(Arc::clone(&taken)));
                    free.insert(Arc::downgrade(&running));
                    return Some((Holds(running), taken));
                }
                Entry::Occupied(other) if other.get().strong_count() > 0 => return None,
                Entry::Occupied(_) if Instant::now() >= until => return None,
                Entry::Occupied(_) => {}
            }
            tokio::time::sleep(LOOKED_FOR).await;
        }
    }
}

/// The id of a request, which is read beside the runtime; other messages have none.
pub(super) async fn of(identity: &Identity, message: &Bytes) -> Result<Option<RequestId>, ApiError> {
    #[derive(Deserialize)]
    struct Head {
        id: RequestId,
        #[serde(rename = "method")]
        _method: IgnoredAny,
    }
    let (size, message) = (message.len(), message.clone());
    let id = move || Some(serde_json::from_slice::<Head>(&message).ok()?.id);
    decode(identity.sender(), size, id).await
}

/// The answer, whose id stays taken until it is sent.
pub(super) fn until_sent(answer: Response, taken: Option<Arc<Taken>>) -> Response {
    let kind = answer.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
        return answer;
    }
    let holding = move |part: Result<Bytes, axum::Error>| {
        let _ = &taken;
        part
    };
    answer.map(|body| Body::from_stream(body.into_data_stream().map(holding)))
}
