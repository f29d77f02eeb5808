//! Requests with the token of an account.

use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::{Bearer, kept::NoToken};

type Failure = StreamableHttpError<reqwest::Error>;

impl Bearer {
    /// Sends with the account's token, which is renewed once where it is refused.
    pub(in crate::mcp) async fn send<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        send: impl Fn(String) -> F,
    ) -> Result<T, Failure> {
        let token = self.token(None).await.map_err(failure)?;
        match send(token.clone()).await {
            Err(fault) if is_unauthorized(&fault) => {
                let token = self.token(Some(&token)).await.map_err(failure)?;
                let sent = send(token).await;
                if sent.as_ref().is_err_and(is_unauthorized) {
                    self.refuse();
                }
                sent
            }
            Err(StreamableHttpError::InsufficientScope(fault)) => {
                self.want(fault.get_required_scope()).await;
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
