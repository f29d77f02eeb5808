//! Sign-in by OpenID Connect: people whom a provider knows, by the tokens that it signs.
//!
//! People sign in on the page with the authorization code flow and PKCE, and have a session; programs send access tokens. The crate
//! `openidconnect` takes no access tokens (`at+jwt`) and brings cryptography of its own, so that both kinds are checked in `token` alone.
//!
//! The signatures are checked by `ring`, which also serves TLS, and the claims by `jsonwebtoken`.

mod browser;
mod person;
mod provider;
mod settings;
mod signature;
mod token;

use browser::Ending;
pub(crate) use browser::{Begun, Callback, MAX_SESSIONS, SignInError};
pub(crate) use person::Person;
use provider::Provider;
pub use settings::{GroupSettings, SignInSettings};
use token::Kind;
pub(crate) use token::TokenError;

/// The provider, and who of its people may do what.
#[derive(derive_more::Debug)]
pub struct SignIn {
    settings: SignInSettings,
    provider: Provider,
    /// The address of this server, without a slash at its end.
    public_url: String,
    /// Whom tokens have to be for.
    audience: Vec<String>,
    /// The secret of `client_id`.
    #[debug(skip)]
    secret: Option<String>,
    ending: Ending,
}

impl SignIn {
    /// With the address at which clients reach this server.
    ///
    /// # Errors
    /// Names the setting and says what to do.
    pub fn new(settings: SignInSettings, public_url: &str) -> Result<Self, String> {
        settings.check()?;
        signature::install();
        let public_url = public_url.trim_end_matches('/').to_owned();
        let audience = match settings.audience.is_empty() {
            true => vec![public_url.clone(), format!("{public_url}/mcp")],
            false => settings.audience.clone(),
        };
        let secret = settings.secret()?;
        let (provider, ending) = (Provider::new(&settings.issuer)?, Ending::new());
        Ok(Self { settings, provider, public_url, audience, secret, ending })
    }

    /// The provider, as it calls itself.
    pub(crate) fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// The address of this server.
    pub(crate) fn public_url(&self) -> &str {
        &self.public_url
    }

    /// Whether browsers reach this server by https.
    pub(crate) fn is_https(&self) -> bool {
        self.public_url.starts_with("https:")
    }

    /// The scopes that tokens have to have.
    pub(crate) fn required_scopes(&self) -> &[String] {
        &self.settings.required_scopes
    }

    /// Whether the groups of people decide what they may do.
    pub(crate) fn has_groups(&self) -> bool {
        !self.settings.groups.is_empty()
    }

    /// Whether people who are no users yet become users.
    pub(crate) fn creates_users(&self) -> bool {
        self.settings.create_users
    }

    /// Whether a text can be a token, not a key.
    pub(crate) fn is_token(text: &str) -> bool {
        token::is_token(text)
    }

    /// Whose an access token is.
    ///
    /// # Errors
    /// When it opens nothing here.
    pub(crate) async fn person(&self, token: &str) -> Result<Person, TokenError> {
        let Self { settings, provider, audience, .. } = self;
        let (claims, issued_at) =
            token::claims_of(token, Kind::Access, provider, &settings.issuer, audience).await?;
        if !person::has_scopes(&claims, &settings.required_scopes) {
            return Err(TokenError::Scope);
        }
        Person::of(&claims, issued_at, settings)
    }
}
