//! Certificate authorities that are trusted beside the system's, such as a company's own.

use std::{fs, path::Path, sync::OnceLock};

use reqwest::Certificate;

static TRUSTED: OnceLock<Vec<Certificate>> = OnceLock::new();

/// Trusts the certificates of a PEM file in every client that is built from now on. Once in a process.
///
/// # Errors
/// When the file cannot be read or has no certificate, or others are trusted already.
pub fn trust_ca_file(file: &Path) -> Result<(), String> {
    let place = file.display();
    let pem = fs::read(file).map_err(|error| format!("cannot read {place}: {error}"))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| format!("{place}: {error}"))?;
    if certificates.is_empty() {
        return Err(format!(
            "{place} has no certificate; write it as PEM, which begins with `-----BEGIN CERTIFICATE-----`"
        ));
    }
    TRUSTED.set(certificates).map_err(|_| "certificates are trusted already in this process".to_owned())
}

pub(super) fn trusted() -> impl Iterator<Item = Certificate> {
    TRUSTED.get().into_iter().flatten().cloned()
}
