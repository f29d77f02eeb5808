//! Checks tokens: JWTs that the provider has signed, access tokens (RFC 9068) and ID tokens (OpenID Connect Core 1.0).

use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use serde_json::Value;

use super::{provider::Provider, signature::ALGORITHMS};

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// How far the clocks of the provider and of this server may differ, in seconds.
const LEEWAY: u64 = 30;

/// The claims of a token.
pub(super) type Claims = Value;

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

/// The claims of a token of the provider's that is for one of `audience`.
pub(super) async fn claims_of(
    token: &str,
    provider: &Provider,
    issuer: &str,
    audience: &[String],
) -> Result<Claims, TokenError> {
    let invalid = |why: &str| TokenError::Invalid(why.to_owned());
    if token.len() > MAX_TOKEN {
        return Err(TokenError::Invalid(format!("the token is longer than {MAX_TOKEN} bytes")));
    }
    let header = decode_header(token).map_err(|fault| explained(fault.kind()))?;
    // Other tokens of the provider, such as those that end sessions, are no access tokens.
    let kind = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
    if !matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt") {
        return Err(invalid("the token is of another kind than access tokens"));
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
    Ok(checked.claims)
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
    use super::*;

    #[test]
    fn b21_a_key_is_not_taken_for_a_token() {
        assert!(is_token("eyJhbGciOiJFUzI1NiJ9.e30.c2ln") && is_token("a-_.b.c"));
        for other in ["trk_0123", "", "a.b", "a.b.c.d", "a..c", "a.b.c=", "a.b. c", "a.b."] {
            assert!(!is_token(other), "{other}");
        }
    }
}
