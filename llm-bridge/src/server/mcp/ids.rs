//! The requests of sessions that run, by their ids and progress tokens.

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
use rmcp::model::{ProgressToken, RequestId};
use serde::{Deserialize, de::IgnoredAny};
use tokio::time::Instant;

use crate::{
    mcp::Named,
    server::{
        callers::identity::Identity,
        requests::{api_error::ApiError, body::decode},
    },
};

/// How long an answer that is made may take to be sent, before its id counts as in use.
const SENT_WITHIN: Duration = Duration::from_secs(1);
/// How often to look whether it was sent.
const LOOKED_FOR: Duration = Duration::from_millis(2);

/// A user by tenant and name, the session, and what a request has. A session that another user names is another.
type Key = ([String; 3], Named);

#[derive(Default)]
pub(super) struct RunningIds(Arc<Mutex<HashMap<Key, Weak<Running>>>>);

/// A request that runs, in the extensions of the HTTP request: until it is handled, also where its client has gone away.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "held, not read")]
pub(super) struct Holds(Vec<Arc<Running>>);

#[derive(Debug)]
#[expect(dead_code, reason = "held, not read")]
struct Running(Arc<Taken>);

/// An id or a token in use, until the answer is sent.
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
    /// Takes what a request has.
    ///
    /// # Errors
    /// What of it another request of the session has.
    pub(super) async fn take(
        &self,
        identity: &Identity,
        session: &str,
        names: &[Named],
    ) -> Result<(Holds, Vec<Arc<Taken>>), Named> {
        let whose = [identity.registry.tenant(), &identity.caller.user, session].map(str::to_owned);
        let (mut holds, mut all) = (Vec::new(), Vec::new());
        for name in names {
            let taken = self.take_one((whose.clone(), name.clone())).await;
            let (running, taken) = taken.ok_or_else(|| name.clone())?;
            holds.push(running);
            all.push(taken);
        }
        Ok((Holds(holds), all))
    }

    /// A client may use an id again as soon as it has the answer, which is a moment before the answer is over here.
    async fn take_one(&self, key: Key) -> Option<(Arc<Running>, Arc<Taken>)> {
        let until = Instant::now() + SENT_WITHIN;
        loop {
            match self.0.lock().entry(key.clone()) {
                Entry::Vacant(free) => {
                    let taken = Arc::new(Taken { key, all: Arc::clone(&self.0) });
                    let running = Arc::new(Running(Arc::clone(&taken)));
                    free.insert(Arc::downgrade(&running));
                    return Some((running, taken));
                }
                Entry::Occupied(other) if other.get().strong_count() > 0 => return None,
                Entry::Occupied(_) if Instant::now() >= until => return None,
                Entry::Occupied(_) => {}
            }
            tokio::time::sleep(LOOKED_FOR).await;
        }
    }
}

/// The id of a request, and what it has beside it that no other may have; they are read beside the runtime. Other messages have none.
pub(super) async fn of(
    identity: &Identity,
    message: &Bytes,
) -> Result<Option<(RequestId, Vec<Named>)>, ApiError> {
    #[derive(Deserialize)]
    struct Head {
        id: RequestId,
        #[serde(rename = "method")]
        _method: IgnoredAny,
    }
    #[derive(Deserialize)]
    struct WithParams {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        progress_token: ProgressToken,
    }
    let (size, message) = (message.len(), message.clone());
    let read = move || {
        let id = serde_json::from_slice::<Head>(&message).ok()?.id;
        let token = serde_json::from_slice::<WithParams>(&message).ok();
        let token = token.map(|message| Named::Progress(message.params.meta.progress_token));
        let names = [Named::Request(id.clone())].into_iter().chain(token).collect();
        Some((id, names))
    };
    decode(identity.sender(), size, read).await
}

/// The answer, whose id stays taken until it is sent.
pub(super) fn until_sent(answer: Response, taken: Vec<Arc<Taken>>) -> Response {
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
