//! TLS of all clients: one configuration, so that the certificates of the system are read once, when the first server is to be checked. Most
//! programs reach their model server over plain HTTP, and need none.

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use rustls_platform_verifier::Verifier;

use super::trusted::trusted;

static CONFIG: LazyLock<ClientConfig> = LazyLock::new(|| {
    // An error says that the process has a provider already, which serves as well.
    let _ = ring::default_provider().install_default();
    let builder = ClientConfig::builder();
    let verifier = OnRequest(Arc::clone(builder.crypto_provider()));
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = ["h2", "http/1.1"].map(Into::into).into();
    config
});

/// The configuration; what it holds is shared.
pub(super) fn config() -> ClientConfig {
    CONFIG.clone()
}

/// The platform's way to check a server, once there was one to check.
static VERIFIER: Mutex<Option<Arc<Verifier>>> = Mutex::new(None);

/// Reads the certificates again for the next server.
pub(super) fn read_again() {
    *VERIFIER.lock() = None;
}

/// Checks servers as the platform does.
#[derive(Debug)]
struct OnRequest(Arc<CryptoProvider>);

impl OnRequest {
    fn verifier(&self) -> Result<Arc<Verifier>, Error> {
        let mut made = VERIFIER.lock();
        if let Some(verifier) = &*made {
            return Ok(Arc::clone(verifier));
        }
        let verifier = Verifier::new_with_extra_roots(trusted(), Arc::clone(&self.0)).map_err(|error| {
            Error::General(format!(
                "{error}: no https address can be reached before the system's CA certificates are installed"
            ))
        })?;
        Ok(Arc::clone(made.insert(Arc::new(verifier))))
    }
}

impl ServerCertVerifier for OnRequest {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
