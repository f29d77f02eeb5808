//! The HTTP of the client library with the token of an account in each request.

use std::{collections::HashMap, sync::Arc};

use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

use super::{super::bounded_http::BoundedHttp, Bearer, kept::NoToken};

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An HTTP client that opens an account, where there is one to open.
#[derive(Clone)]
pub(in crate::mcp) struct AuthorizedHttp {
    pub(in crate::mcp) http: BoundedHttp,
    pub(in crate::mcp) bearer: Option<Arc<Bearer>>,
}

impl AuthorizedHttp {
    /// Sends with the key that is configured, or with the account's token, which is renewed once where it is refused.
    async fn with_token<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        key: Option<String>,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, Failure> {
        let Some(bearer) = &self.bearer else { return send(key).await };
        let token = bearer.token(None).await.map_err(failure)?;
        match send(Some(token.clone())).await {
            Err(fault) if is_unauthorized(&fault) => {
                let token = bearer.token(Some(&token)).await.map_err(failure)?;
                let sent = send(Some(token)).await;
                if sent.as_ref().is_err_and(is_unauthorized) {
                    bearer.refuse();
                }
                sent
            }
            Err(StreamableHttpError::InsufficientScope(fault)) => {
                bearer.want(fault.get_required_scope()).await;
                Err(StreamableHttpError::InsufficientScope(fault))
            }
            sent => sent,
        }
    }
}

fn is_unauthorized(fault: &Failure) -> bool {
    match fault {
        StreamableHttpError::AuthRequired(_) => true,
        // The library knows it by a header that not every server sends.
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

fn failure(fault: NoToken) -> Failure {
    let text = match fault {
        NoToken::Ask => "the user has to authorize it first".to_owned(),
        NoToken::Later(cause) => cause,
    };
    StreamableHttpError::UnexpectedServerResponse(text.into())
}

impl StreamableHttpClient for AuthorizedHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let send =
            |key| self.http.post_message(uri.clone(), message.clone(), session.clone(), key, headers.clone());
        self.with_token(key, send).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let send = |key| {
            let (uri, message, session) = (uri.clone(), message.clone(), session.clone());
            self.http.post_message_with_max_sse_event_size(uri, message, session, key, headers.clone(), most)
        };
        self.with_token(key, send).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let send = |key| self.http.delete_session(uri.clone(), session.clone(), key, headers.clone());
        self.with_token(key, send).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let send =
            |key| self.http.get_stream(uri.clone(), session.clone(), last.clone(), key, headers.clone());
        self.with_token(key, send).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        key: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<Events, Failure> {
        let send = |key| {
            let (uri, session, last) = (uri.clone(), session.clone(), last.clone());
            self.http.get_stream_with_max_sse_event_size(uri, session, last, key, headers.clone(), most)
        };
        self.with_token(key, send).await
    }
}
