//! Signs and checks messages: [Standard Webhooks](https://www.standardwebhooks.com), signature scheme `v1`.

use std::str::FromStr;

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// How many bytes a secret may have.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// What sender and receiver of webhooks have in common: 24 to 64 random bytes, written `whsec_` and base64.
///
/// ```
/// use toolrack_http::Secret;
///
/// let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse()?;
/// let signature = secret.sign("msg_1", 1614265330, "{}");
/// assert!(secret.verify("msg_1", 1614265330, "{}", &signature));
/// assert!(!secret.verify("msg_1", 1614265330, "{ }", &signature));
/// # Ok::<(), toolrack_http::BadSecret>(())
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Secret(…)")]
pub struct Secret(Vec<u8>);

/// Why a text is no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a webhook's secret is `whsec_` and 24 to 64 random bytes in base64; make one with `echo whsec_$(openssl rand -base64 32)`"
)]
pub struct BadSecret(());

impl FromStr for Secret {
    type Err = BadSecret;

    fn from_str(text: &str) -> Result<Self, BadSecret> {
        let key =
            STANDARD.decode(text.strip_prefix("whsec_").ok_or(BadSecret(()))?).map_err(|_| BadSecret(()))?;
        if LENGTHS.contains(&key.len()) { Ok(Self(key)) } else { Err(BadSecret(())) }
    }
}

impl Secret {
    /// The value of the header `webhook-signature`.
    pub fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let mac = self.mac(id, timestamp, body);
        format!("v1,{}", mac.map(|mac| STANDARD.encode(mac.finalize().into_bytes())).unwrap_or_default())
    }

    /// Whether one of the signatures in the header is right. It takes as long for a wrong one. Whoever receives messages
    /// also asks that the timestamp is of these minutes, and takes no id twice.
    pub fn verify(&self, id: &str, timestamp: i64, body: &str, signatures: &str) -> bool {
        signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,")).any(|signature| {
            let given = STANDARD.decode(signature).unwrap_or_default();
            self.mac(id, timestamp, body).is_some_and(|mac| mac.verify_slice(&given).is_ok())
        })
    }

    /// HMAC takes keys of any length, so there is one.
    fn mac(&self, id: &str, timestamp: i64, body: &str) -> Option<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        Some(mac.chain_update(format!("{id}.{timestamp}.{body}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tests of the reference libraries of Standard Webhooks.
    #[test]
    fn l5_a_signature_is_what_standard_webhooks_says() {
        let secret: Secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".parse().unwrap();
        let body = r#"{"email":"test@example.com","username":"test_user"}"#;
        let (id, timestamp) = ("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_649_367_553);
        let signature = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
        assert_eq!(secret.sign(id, timestamp, body), signature);
        // A receiver that changes its secret is sent two signatures.
        assert!(secret.verify(id, timestamp, body, &format!("v1,AAAA v1a,x {signature}")));
        for wrong in ["", "v1,", "v1,AAAA", "tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=", "v1,tZ1I4"] {
            assert!(!secret.verify(id, timestamp, body, wrong), "{wrong}");
        }
        assert!(!secret.verify(id, timestamp + 1, body, signature));
    }

    #[test]
    fn l5_a_secret_that_is_none_is_refused_and_none_is_shown() {
        for bad in ["", "whsec_", "whsec_????", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert!(bad.parse::<Secret>().unwrap_err().to_string().contains("whsec_"), "{bad}");
        }
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
