//! Sign-in in a browser: the authorization code flow with PKCE (RFC 7636), OpenID Connect Core 1.0, section 3.1.
//!
//! What has to come back is kept in a cookie of the browser that began, so that nobody else can end it, and nothing waits here.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use form_urlencoded::Serializer;
use jiff::SignedDuration;
use registry_core::text::cut;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, SemaphorePermit};
use toolrack_remote::mcp::oauth::SignedIn;

use super::{
    Person, SignIn, TokenError,
    provider::Metadata,
    settings::endpoint,
    token::{self, Kind},
};

/// Sessions of a user; the oldest give way.
pub(crate) const MAX_SESSIONS: usize = 20;
/// How many sign-ins end at once: each has the provider asked, and anybody may send what looks like one.
const AT_ONCE: usize = 16;
/// How many more wait for that.
const MAX_WAITING: usize = 64;
/// How long they do.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest path to come back to, in bytes.
const MAX_PATH: usize = 2000;
/// Where the provider sends people back to.
const CALLBACK: &str = "/sign-in/callback";

/// A sign-in that a browser has begun.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    state: String,
    nonce: String,
    verifier: String,
    /// The path of this server to come back to.
    to: String,
}

impl Begun {
    /// As it stands in the cookie.
    pub(crate) fn encoded(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    /// Where to go at the end.
    pub(crate) fn path(&self) -> &str {
        if is_own_path(&self.to) { &self.to } else { "/" }
    }
}

/// Whether a path leads to this server and nowhere else.
fn is_own_path(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= MAX_PATH
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// What the provider sends back with the browser.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Callback {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// The places for sign-ins that end. Nothing keeps out who has no key, so that nobody waits without end.
#[derive(Debug)]
pub(super) struct Ending {
    places: Semaphore,
    coming: Semaphore,
}

impl Ending {
    pub(super) fn new() -> Self {
        Self { places: Semaphore::new(AT_ONCE), coming: Semaphore::new(AT_ONCE + MAX_WAITING) }
    }

    /// A place, as long as it is held; at once, or after a while.
    async fn place(&self) -> Result<[SemaphorePermit<'_>; 2], SignInError> {
        let coming = self.coming.try_acquire().map_err(|_| SignInError::Busy)?;
        match tokio::time::timeout(PATIENCE, self.places.acquire()).await {
            Ok(Ok(place)) => Ok([coming, place]),
            _ => Err(SignInError::Busy),
        }
    }
}

/// Why somebody was not signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInError {
    /// What came back belongs to no sign-in of this browser.
    Foreign,
    /// The provider has refused, and how it says so.
    Refused(String),
    /// The provider fails; the text is for the log.
    Provider(String),
    /// The person may not come in.
    NotAllowed(String),
    /// Too many sign-ins end just now.
    Busy,
    /// No random numbers.
    Random(String),
}

fn random() -> Result<String, SignInError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|fault| SignInError::Random(fault.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Whether an ID token that has a client in its audience was issued to it: OpenID Connect Core 1.0, section 3.1.3.7, steps 3 to 5.
fn is_for(claims: &Value, client: &str) -> bool {
    match claims.get("azp").filter(|party| !party.is_null()) {
        Some(party) => party == client,
        None => claims.get("aud").and_then(Value::as_array).is_none_or(|all| all.len() == 1),
    }
}

/// What the provider gives for a code.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
    refresh_token: Option<String>,
    /// Seconds, which some providers write as a text.
    expires_in: Option<Value>,
}

impl Tokens {
    fn expires_in(&self) -> Option<i64> {
        let seconds = self.expires_in.as_ref()?;
        seconds.as_i64().or_else(|| seconds.as_str()?.parse().ok()).map(|seconds| seconds.max(0))
    }
}

impl SignIn {
    /// Whether people can sign in on the page.
    pub(crate) fn has_page(&self) -> bool {
        self.settings.client_id.is_some()
    }

    /// How long a browser stays signed in.
    pub(crate) fn session_lasts(&self) -> SignedDuration {
        SignedDuration::from_hours(i64::from(self.settings.session_hours))
    }

    fn client_id(&self) -> &str {
        self.settings.client_id.as_deref().unwrap_or_default()
    }

    /// Begins a sign-in that ends at a path of this server: what the browser keeps, and where it goes.
    ///
    /// # Errors
    /// When the provider does not answer.
    pub(crate) async fn begin(&self, to: &str) -> Result<(Begun, String), SignInError> {
        let known = self.provider.known().await.map_err(SignInError::Provider)?;
        let place = known.metadata.authorization_endpoint.as_deref().unwrap_or_default();
        let mut url = endpoint(place)
            .map_err(|fault| SignInError::Provider(format!("its authorization_endpoint {fault}")))?;
        let to = if is_own_path(to) { to } else { "/" };
        let begun = Begun { state: random()?, nonce: random()?, verifier: random()?, to: to.to_owned() };
        let mut scopes = vec!["openid"];
        scopes.extend(self.settings.scopes.iter().map(String::as_str).filter(|scope| *scope != "openid"));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client_id())
            .append_pair("redirect_uri", &format!("{}{CALLBACK}", self.public_url))
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &begun.state)
            .append_pair("nonce", &begun.nonce)
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(&begun.verifier)))
            .append_pair("code_challenge_method", "S256");
        Ok((begun, url.into()))
    }

    /// Who has signed in, and what the provider has given for servers where that is exchanged.
    ///
    /// # Errors
    /// When it was not in this browser, the provider refuses, or its answer is not valid.
    pub(crate) async fn finish(
        &self,
        begun: &Begun,
        callback: Callback,
    ) -> Result<(Person, Option<SignedIn>), SignInError> {
        let state = callback.state.unwrap_or_default();
        if !bool::from(state.as_bytes().ct_eq(begun.state.as_bytes())) {
            return Err(SignInError::Foreign);
        }
        // RFC 9207.
        if callback.iss.is_some_and(|issuer| issuer != self.settings.issuer) {
            return Err(SignInError::Foreign);
        }
        if let Some(error) = callback.error {
            return Err(SignInError::Refused(cut(error, 100)));
        }
        let code = callback.code.ok_or(SignInError::Foreign)?;
        let _place = self.ending.place().await?;
        let known = self.provider.known().await.map_err(SignInError::Provider)?;
        let metadata = &known.metadata;
        let tokens = self.tokens(&code, begun, metadata).await.map_err(SignInError::Provider)?;
        let invalid = |error| match error {
            TokenError::Invalid(why) => SignInError::Provider(format!("its ID token is not valid: {why}")),
            TokenError::Provider(cause) => SignInError::Provider(cause),
            TokenError::NotAllowed(message) => SignInError::NotAllowed(message),
            TokenError::Scope => SignInError::NotAllowed("scopes are missing".to_owned()),
        };
        let audience = [self.client_id().to_owned()];
        let issuer = &self.settings.issuer;
        let checked = token::claims_of(&tokens.id_token, Kind::Id, &self.provider, issuer, &audience).await;
        let (mut claims, issued_at) = checked.map_err(invalid)?;
        if claims.get("nonce").and_then(Value::as_str) != Some(begun.nonce.as_str()) {
            return Err(SignInError::Foreign);
        }
        if !is_for(&claims, self.client_id()) {
            return Err(invalid(TokenError::Invalid("it is for another client (`azp`)".to_owned())));
        }
        // Many providers have most claims there only.
        if Person::lacks_claims(&claims, &self.settings)
            && let (Some(place), Some(token)) = (&metadata.userinfo_endpoint, &tokens.access_token)
        {
            let more = self.provider.userinfo(place, token).await.map_err(SignInError::Provider)?;
            if more.get("sub").is_none() || more.get("sub") != claims.get("sub") {
                return Err(SignInError::Provider("its userinfo is of somebody else".to_owned()));
            }
            Person::add_claims(&mut claims, more);
        }
        let person = Person::of(&claims, issued_at, &self.settings).map_err(invalid)?;
        Ok((person, self.given(tokens, metadata)))
    }

    /// What was given besides the proof of who it is.
    fn given(&self, tokens: Tokens, metadata: &Metadata) -> Option<SignedIn> {
        let expires_in = tokens.expires_in();
        Some(SignedIn {
            issuer: self.settings.issuer.clone(),
            token_endpoint: metadata.token_endpoint.clone()?,
            revocation_endpoint: metadata.revocation_endpoint.clone(),
            client_id: self.client_id().to_owned(),
            client_secret: self.secret.clone(),
            secret_in_form: metadata.takes_secret_in_form(),
            access_token: tokens.access_token?,
            refresh_token: tokens.refresh_token,
            expires_in,
        })
    }

    async fn tokens(&self, code: &str, begun: &Begun, metadata: &Metadata) -> Result<Tokens, String> {
        let place = metadata.token_endpoint.as_deref().ok_or("it has no token_endpoint")?;
        let secret = self.secret.as_deref();
        let basic = secret.filter(|_| !metadata.takes_secret_in_form());
        let form = self.form(code, begun, basic.is_none());
        let basic = basic.map(|secret| (self.client_id(), secret));
        self.provider.tokens(place, basic, form).await
    }

    fn form(&self, code: &str, begun: &Begun, with_client: bool) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &format!("{}{CALLBACK}", self.public_url))
            .append_pair("code_verifier", &begun.verifier);
        if with_client {
            form.append_pair("client_id", self.client_id());
            if let Some(secret) = &self.secret {
                form.append_pair("client_secret", secret);
            }
        }
        form.finish()
    }

    /// Where the provider ends its own session; `None` if it cannot.
    pub(crate) async fn end_url(&self) -> Option<String> {
        let known = self.provider.known().await.ok()?;
        let mut url: Url = endpoint(known.metadata.end_session_endpoint.as_deref()?).ok()?;
        url.query_pairs_mut()
            .append_pair("client_id", self.client_id())
            .append_pair("post_logout_redirect_uri", &format!("{}/", self.public_url));
        Some(url.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn b21_nobody_is_sent_elsewhere_after_signing_in() {
        let path = |to: &str| {
            let random = String::new;
            let begun = Begun { state: random(), nonce: random(), verifier: random(), to: to.to_owned() };
            Begun::decode(&begun.encoded()).unwrap().path().to_owned()
        };
        for own in ["/", "/?a=b", "/tools#x"] {
            assert_eq!(path(own), own);
        }
        for other in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "evil.example",
            "/a b",
            "/a\r\nb",
            "/\u{e9}",
            &format!("/{}", "x".repeat(MAX_PATH)),
        ] {
            assert_eq!(path(other), "/", "{other}");
        }
        assert!(
            Begun::decode("").is_none() && Begun::decode("e30").is_none() && Begun::decode("%").is_none()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a33_so_many_sign_ins_wait_for_a_place_and_none_for_ever() {
        let ending = Arc::new(Ending::new());
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            held.push(ending.place().await.unwrap());
        }
        let waits = || {
            let ending = Arc::clone(&ending);
            tokio::spawn(async move { ending.place().await.map(drop) })
        };
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| waits()).collect();
        while ending.coming.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let began = Instant::now();
        assert_eq!(ending.place().await.map(drop), Err(SignInError::Busy));
        assert_eq!(began.elapsed(), Duration::ZERO);
        for one in waiting {
            assert_eq!(one.await.unwrap(), Err(SignInError::Busy));
        }
        assert_eq!(began.elapsed(), PATIENCE);
        held.pop();
        assert!(ending.place().await.is_ok());
    }
}
