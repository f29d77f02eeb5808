//! What can name a user, a tenant, a persona or a module.

/// The longest identifier, in bytes.
const LONGEST: usize = 256;

/// Whether this can be an identifier. Every store can keep what can.
///
/// # Errors
/// What an identifier has to be.
pub(crate) fn check_identifier(text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(format!("a text of 1 to {LONGEST} bytes, without control characters"));
    }
    Ok(())
}
