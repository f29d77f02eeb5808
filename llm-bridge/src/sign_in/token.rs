//! Checks tokens: JWTs that the provider has signed, access tokens (RFC 9068) and ID tokens (OpenID Connect Core 1.0).

use jiff::SignedDuration;
use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use registry_core::clock::{Clock, SystemClock};
use serde_json::Value;

use super::{provider::Provider, signature::ALGORITHMS};

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// How far the clocks of the provider and of this server may differ, in seconds.
const LEEWAY: u64 = 30;

/// The claims of a token.
pub(super) type Claims = Value;

/// What a token is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Requests.
    Access,
    /// A sign-in on the page.
    Id,
}

impl Kind {
    /// Whether tokens of a type (`typ`) are of this kind. Other tokens of the provider, such as those that end sessions, are of none.
    fn has(self, typ: Option<&str>) -> bool {
        let typ = typ.unwrap_or("JWT").to_ascii_lowercase();
        match typ.trim_start_matches("application/") {
            "jwt" => true,
            "at+jwt" => matches!(self, Self::Access),
            _ => false,
        }
    }
}

/// Why a token opens nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// It is not valid, and why.
    Invalid(String),
    /// It has not the scopes that are needed.
    Scope,
    /// It is valid, but its user may not come in; the text says what to do.
    NotAllowed(String),
    /// Nobody can say: the provider does not answer.
    Provider(String),
}

/// Whether a text can be a JWT: three parts in URL-safe base64.
pub(super) fn is_token(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    text.split('.').count() == 3 && text.split('.').all(is_part)
}

/// The claims of a token of the provider's that is for one of `audience`, and when it was issued, in seconds since 1970.
pub(super) async fn claims_of(
    token: &str,
    kind: Kind,
    provider: &Provider,
    issuer: &str,
    audience: &[String],
) -> Result<(Claims, i64), TokenError> {
    let invalid = |why: &str| TokenError::Invalid(why.to_owned());
    if token.len() > MAX_TOKEN {
        return Err(TokenError::Invalid(format!("the token is longer than {MAX_TOKEN} bytes")));
    }
    let header = decode_header(token).map_err(|fault| explained(fault.kind()))?;
    if !kind.has(header.typ.as_deref()) {
        return Err(invalid(match kind {
            Kind::Access => "the token is of another kind than access tokens",
            Kind::Id => "the token is of another kind than ID tokens",
        }));
    }
    if header.crit.is_some() {
        return Err(invalid("the token has extensions (`crit`) that this server does not know"));
    }
    if !ALGORITHMS.contains(&header.alg) {
        return Err(invalid("the token is signed with an algorithm that is not taken"));
    }
    let key = provider.key(header.kid.as_deref(), header.alg).await.map_err(TokenError::Provider)?;
    let key = key.ok_or_else(|| invalid("the token is signed with a key that the provider does not have"))?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[issuer]);
    validation.set_audience(audience);
    let checked = decode::<Claims>(token, &key, &validation).map_err(|fault| match fault.kind() {
        ErrorKind::InvalidAudience => TokenError::Invalid(format!(
            "the token is for somebody else: it has to be for {} (`aud`)",
            audience.join(" or ")
        )),
        ErrorKind::InvalidIssuer => TokenError::Invalid(format!("the token is not of {issuer}")),
        kind => explained(kind),
    })?;
    let issued_at = issued_at(&checked.claims, SystemClock.now().as_second())?;
    Ok((checked.claims, issued_at))
}

/// When a token was issued. Of two tokens of a person the newer one counts, so each has to say it, and none may be ahead of all others.
fn issued_at(claims: &Claims, now: i64) -> Result<i64, TokenError> {
    let at = claims.get("iat").and_then(Value::as_f64);
    let at = at.and_then(|at| SignedDuration::try_from_secs_f64(at).ok()).map(|at| at.as_secs());
    match at {
        Some(at) if at > now.saturating_add_unsigned(LEEWAY) => Err(TokenError::Invalid(
            "the token was issued in the future (`iat`): the clocks of the provider and of this server differ"
                .to_owned(),
        )),
        Some(at) => Ok(at),
        None => Err(TokenError::Invalid(
            "the token does not say when it was issued: `iat` has to be a number of seconds".to_owned(),
        )),
    }
}

fn explained(kind: &ErrorKind) -> TokenError {
    TokenError::Invalid(match kind {
        ErrorKind::ExpiredSignature => "the token has expired; get a new one".to_owned(),
        ErrorKind::ImmatureSignature => "the token is not valid yet".to_owned(),
        ErrorKind::InvalidSignature => "the token's signature is wrong".to_owned(),
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            format!("the token has no valid `{claim}`")
        }
        _ => "the token cannot be read, or is signed with an algorithm that is not taken".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b21_a_token_says_when_it_was_issued() {
        let at = |iat: Value| issued_at(&json!({ "iat": iat }), 1000).ok();
        for (iat, read) in [(json!(7), 7), (json!(999.9), 999), (json!(1030), 1030), (json!(-1), -1)] {
            assert_eq!(at(iat.clone()), Some(read), "{iat}");
        }
        for iat in
            [json!(1031), json!(1e300), json!(-1e300), json!(u64::MAX), json!("7"), json!(null), json!([7])]
        {
            assert_eq!(at(iat.clone()), None, "{iat}");
        }
        assert_eq!(issued_at(&json!({}), 1000).ok(), None);
    }

    #[test]
    fn b21_a_key_is_not_taken_for_a_token() {
        assert!(is_token("eyJhbGciOiJFUzI1NiJ9.e30.c2ln") && is_token("a-_.b.c"));
        for other in ["trk_0123", "", "a.b", "a.b.c.d", "a..c", "a.b.c=", "a.b. c", "a.b."] {
            assert!(!is_token(other), "{other}");
        }
    }
}
