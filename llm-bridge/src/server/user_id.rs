//! What can be the id of a user.

/// The longest id of a user that is taken, in bytes.
const LONGEST: usize = 256;

/// Whether this can be the id of a user. Every store can keep what can.
///
/// # Errors
/// What an id has to be.
pub(crate) fn check_user_id(id: &str) -> Result<(), String> {
    if id.trim().is_empty() || id.len() > LONGEST || id.chars().any(char::is_control) {
        return Err(format!("a text of 1 to {LONGEST} bytes, without control characters"));
    }
    Ok(())
}
