//! The provider: what it says of itself, the keys that it signs with, and requests to it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use form_urlencoded::byte_serialize;
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, Jwk, PublicKeyUse},
};
use parking_lot::RwLock;
use registry_core::{text::cut, with_causes};
use reqwest::{Client, RequestBuilder, StatusCode, Url, header, redirect::Policy};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use toolrack_http::{build_client, read_body};

use super::{settings::endpoint, signature::ALGORITHMS};

/// How long an answer of the provider may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read, in bytes: metadata, keys, tokens.
const MAX_REPLY: usize = 256 * 1024;
/// Keys of the provider that are used; the rest is left out.
const MAX_KEYS: usize = 64;
/// For so many seconds the provider is not asked for its keys again, whatever keys tokens name.
const REFRESH_SECONDS: u64 = 10;
/// How long its keys are used before it is asked again.
const FRESH: Duration = Duration::from_secs(3600);
/// How long they are used while it does not answer.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// What a provider says of itself: OpenID Connect Discovery 1.0.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Metadata {
    issuer: String,
    jwks_uri: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) userinfo_endpoint: Option<String>,
    pub(super) end_session_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    /// Basic authentication where it says nothing.
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

impl Metadata {
    /// Whether clients send their secret in the form, not as basic authentication.
    pub(super) fn takes_secret_in_form(&self) -> bool {
        let methods = &self.token_endpoint_auth_methods_supported;
        let takes = |wanted: &str| methods.iter().any(|method| method == wanted);
        takes("client_secret_post") && !takes("client_secret_basic")
    }
}

/// A key that the provider signs with.
struct SigningKey {
    id: Option<String>,
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

impl SigningKey {
    /// `None` for keys of other kinds and uses.
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_) | AlgorithmParameters::Other(_)) {
            return None;
        }
        if jwk.common.public_key_use.as_ref().is_some_and(|used| *used != PublicKeyUse::Signature) {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let algorithm = match jwk.common.key_algorithm {
            Some(named) => Some(named.to_string().parse().ok().filter(|named| ALGORITHMS.contains(named))?),
            None => None,
        };
        Some(Self { id: jwk.common.key_id, algorithm, key })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.key.family() == algorithm.family() && self.algorithm.is_none_or(|own| own == algorithm)
    }
}

/// What is known of the provider.
pub(super) struct Known {
    pub(super) metadata: Metadata,
    keys: Vec<SigningKey>,
    since: Instant,
}

impl Known {
    /// The key that a token was signed with. A token that names none has to leave no choice.
    fn key(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let mut fitting =
            self.keys.iter().filter(|key| key.fits(algorithm) && (id.is_none() || key.id.as_deref() == id));
        let first = fitting.next()?;
        (id.is_some() || fitting.next().is_none()).then(|| first.key.clone())
    }
}

/// The provider at an address that the operator configured.
#[derive(derive_more::Debug)]
#[debug("Provider({issuer})")]
pub(super) struct Provider {
    issuer: String,
    client: Client,
    known: RwLock<Option<Arc<Known>>>,
    /// When it was last asked. Held while it is, so that it is asked once.
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl Provider {
    pub(super) fn new(issuer: &str) -> Result<Self, String> {
        let client = build_client(|| Client::builder().redirect(Policy::none()).timeout(TIMEOUT));
        let client = client.map_err(|error| format!("sign_in: {error}"))?;
        Ok(Self {
            issuer: issuer.to_owned(),
            client,
            known: RwLock::default(),
            asked: tokio::sync::Mutex::default(),
        })
    }

    /// The key that a token was signed with; `None` if the provider has no such key.
    ///
    /// # Errors
    /// When nothing is known of the provider, and it does not answer.
    pub(super) async fn key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Option<DecodingKey>, String> {
        let known = self.known().await?;
        match known.key(id, algorithm) {
            Some(key) => Ok(Some(key)),
            // Providers change their keys now and then.
            None => Ok(self.asked_after(Some(&known)).await?.key(id, algorithm)),
        }
    }

    /// What is known of the provider.
    ///
    /// # Errors
    /// When that is nothing, and it does not answer.
    pub(super) async fn known(&self) -> Result<Arc<Known>, String> {
        let known = self.known.read().clone();
        match known {
            Some(known) if known.since.elapsed() < FRESH => Ok(known),
            // One request finds out; no other waits while the provider takes its time.
            Some(known) if known.since.elapsed() < STALE && self.asked.try_lock().is_err() => Ok(known),
            known => self.asked_after(known.as_ref()).await,
        }
    }

    /// Asks the provider again, unless somebody else has since `seen`, or it was asked a moment ago.
    async fn asked_after(&self, seen: Option<&Arc<Known>>) -> Result<Arc<Known>, String> {
        let mut asked = self.asked.lock().await;
        let known = self.known.read().clone();
        let is_newer = |known: &Arc<Known>| seen.is_none_or(|seen| known.since > seen.since);
        if let Some(known) = known.clone().filter(is_newer) {
            return Ok(known);
        }
        let fault = if asked.is_some_and(|at| at.elapsed() < Duration::from_secs(REFRESH_SECONDS)) {
            "it did not answer a moment ago".to_owned()
        } else {
            // Before, as whoever asks may go away meanwhile; and after, so that those who have waited do not ask one after the other.
            *asked = Some(Instant::now());
            let answered = self.ask().await;
            *asked = Some(Instant::now());
            match answered {
                Ok(new) => {
                    let new = Arc::new(new);
                    *self.known.write() = Some(Arc::clone(&new));
                    return Ok(new);
                }
                Err(fault) => {
                    tracing::warn!(issuer = self.issuer, %fault, "sign_in_provider_failed");
                    fault
                }
            }
        };
        known.filter(|known| known.since.elapsed() < STALE).ok_or(fault)
    }

    async fn ask(&self) -> Result<Known, String> {
        #[derive(Deserialize)]
        struct Keys {
            keys: Vec<Value>,
        }
        let place = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let metadata: Metadata = self.get(endpoint(&place)?).await?;
        if metadata.issuer != self.issuer {
            return Err(format!(
                "the provider calls itself `{}`: write exactly that as `issuer` under [sign_in]",
                metadata.issuer
            ));
        }
        let place = endpoint(&metadata.jwks_uri).map_err(|fault| format!("its jwks_uri {fault}"))?;
        let Keys { keys } = self.get(place).await?;
        let keys: Vec<SigningKey> = keys.into_iter().take(MAX_KEYS).filter_map(SigningKey::read).collect();
        Ok(Known { metadata, keys, since: Instant::now() })
    }

    async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, String> {
        self.send(self.client.get(url)).await
    }

    /// What the provider knows of the person who has given this token.
    pub(super) async fn userinfo(&self, place: &str, token: &str) -> Result<Value, String> {
        let url = endpoint(place).map_err(|fault| format!("its userinfo_endpoint {fault}"))?;
        self.send(self.client.get(url).bearer_auth(token)).await
    }

    /// Exchanges a form for tokens.
    pub(super) async fn tokens<T: DeserializeOwned>(
        &self,
        place: &str,
        basic: Option<(&str, &str)>,
        form: String,
    ) -> Result<T, String> {
        let url = endpoint(place).map_err(|fault| format!("its token_endpoint {fault}"))?;
        let mut request = self.client.post(url).body(form);
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some((id, secret)) = basic {
            // RFC 6749, section 2.3.1: both are encoded before.
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encoded(id), Some(encoded(secret)));
        }
        self.send(request).await
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, String> {
        let request = request.header(header::ACCEPT, "application/json").build();
        let request = request.map_err(|error| error.without_url().to_string())?;
        let place = request.url().to_string();
        let failed = |why: String| format!("{place}: {why}");
        let sent = self.client.execute(request).await;
        let mut response = sent.map_err(|error| failed(with_causes(&error.without_url())))?;
        let status = response.status();
        let body = read_body(&mut response, MAX_REPLY).await.map_err(|error| failed(error.to_string()))?;
        if status != StatusCode::OK {
            // As OAuth says it: `invalid_grant`, `invalid_client`.
            let kind = serde_json::from_slice::<Value>(&body).ok();
            let kind = kind.as_ref().and_then(|body| body.get("error")?.as_str()).unwrap_or_default();
            return Err(failed(format!("it answered {status} {}", cut(kind.to_owned(), 100))));
        }
        serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))
    }
}
