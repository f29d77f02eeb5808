//! The signatures of tokens, checked by what the program checks TLS with.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind,
    crypto::{CryptoProvider, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
    signature::{self, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

/// The algorithms that are taken: those with a public key. With `none` and HMAC whoever knows the public key could sign.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    // Nothing is signed here.
    signer_factory: |_, _| Err(Error::from(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: |algorithm, key| match scheme(*algorithm) {
        Some(_) => Ok(Box::new(PublicKey { algorithm: *algorithm, key: key.clone() })),
        None => Err(Error::from(ErrorKind::UnsupportedAlgorithm)),
    },
    // For keys that are made here.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has the library check signatures with [`ALGORITHMS`]. An error of the library says that this was done before.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

enum Scheme {
    Rsa(&'static RsaParameters),
    Curve(AlgorithmFamily, &'static dyn VerificationAlgorithm),
}

fn scheme(algorithm: Algorithm) -> Option<Scheme> {
    Some(match algorithm {
        Algorithm::RS256 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Scheme::Curve(AlgorithmFamily::Ec, &ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Scheme::Curve(AlgorithmFamily::Ec, &ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Scheme::Curve(AlgorithmFamily::Ed, &ED25519),
        _ => return None,
    })
}

struct PublicKey {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for PublicKey {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (scheme(self.algorithm), self.key.kind()) {
            (Some(Scheme::Rsa(parameters)), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            (Some(Scheme::Curve(family, curve)), DecodingKeyKind::SecretOrDer(point))
                if self.key.family() == family =>
            {
                UnparsedPublicKey::new(curve, point).verify(message, signature).is_ok()
            }
            _ => false,
        };
        if verified { Ok(()) } else { Err(signature::Error::new()) }
    }
}

impl JwtVerifier for PublicKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
