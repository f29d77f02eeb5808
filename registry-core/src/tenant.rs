//! Those who share a server and see nothing of each other.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The tenant of a registry that knows no others.
pub const DEFAULT_TENANT: &str = "default";

/// Where a tenant has what the default tenant has at this path, a file or a folder: `notes.db` of `acme` is in a folder beside it,
/// `notes.tenants/acme-HASH.db`.
///
/// The name shows the tenant's as far as a file's name can; what distinguishes two tenants is the hash.
///
/// ```
/// # use std::path::Path;
/// # use registry_core::{DEFAULT_TENANT, tenant_path};
/// let inbox = Path::new("data/inbox");
/// assert_eq!(tenant_path(inbox, DEFAULT_TENANT), inbox);
/// assert!(tenant_path(inbox, "../acme").starts_with("data/inbox.tenants"));
/// assert_ne!(tenant_path(inbox, "../acme"), tenant_path(inbox, "acme"));
/// ```
pub fn tenant_path(path: &Path, tenant: &str) -> PathBuf {
    if tenant == DEFAULT_TENANT {
        return path.to_owned();
    }
    let shown: String = tenant.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let hash = format!("{:x}", Sha256::digest(tenant));
    let mut own = path.with_extension("tenants").join(format!("{}-{hash}", shown.to_ascii_lowercase()));
    if let Some(extension) = path.extension() {
        own.set_extension(extension);
    }
    own
}
