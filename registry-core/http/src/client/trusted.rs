//! Certificate authorities that are trusted beside the system's, such as a company's own.

use std::{fs, path::Path, sync::OnceLock};

use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::tls;

static TRUSTED: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

/// Trusts the certificates of a PEM file in every client, from its next connection on. Once in a process.
///
/// # Errors
/// When the file cannot be read or has no certificate, or others are trusted already.
pub fn trust_ca_file(file: &Path) -> Result<(), String> {
    let place = file.display();
    let pem = fs::read(file).map_err(|error| format!("cannot read {place}: {error}"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| format!("{place}: {error}"))?;
    if certificates.is_empty() {
        return Err(format!(
            "{place} has no certificate; write it as PEM, which begins with `-----BEGIN CERTIFICATE-----`"
        ));
    }
    TRUSTED
        .set(certificates)
        .map_err(|_| "certificates are trusted already in this process".to_owned())
        .map(|()| tls::read_again())
}

pub(super) fn trusted() -> impl Iterator<Item = CertificateDer<'static>> {
    TRUSTED.get().into_iter().flatten().cloned()
}
