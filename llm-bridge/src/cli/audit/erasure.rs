//! Takes what is personal out of the records of a user.

use registry_core::clock::{Clock, SystemClock};
use toolrack_stores::SqlStore;

use super::key::SigningKey;
use crate::cli::settings::Settings;

/// Erases what is personal in the records of a user's calls, signed with this server's key, and gives their number.
///
/// # Errors
/// When the key cannot be read or made, or the store fails.
pub(in crate::cli) async fn erase(
    settings: &Settings,
    store: &SqlStore,
    tenant: &str,
    user: &str,
) -> Result<usize, String> {
    let key = SigningKey::open(&settings.audit.key_file(&settings.data_dir))?;
    let sign = |message: &str| key.sign(message.as_bytes());
    Ok(store.erase_records(tenant, user, SystemClock.now(), &sign).await?)
}

/// The public key of this server; `None` where it has no key yet.
///
/// # Errors
/// When the file is no key.
pub(in crate::cli) fn public_key_of(settings: &Settings) -> Result<Option<String>, String> {
    let key = SigningKey::read(&settings.audit.key_file(&settings.data_dir))?;
    Ok(key.map(|key| key.public().to_string()))
}
