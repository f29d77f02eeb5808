//! The rule for user ids.

/// The longest id, in bytes.
const LONGEST: usize = 256;

/// Checks a user id.
///
/// # Errors
/// The rule, to complete "it has to be".
pub(crate) fn check_user_id(id: &str) -> Result<(), String> {
    if id.trim().is_empty() || id.len() > LONGEST || id.chars().any(char::is_control) {
        return Err(format!("a text of 1 to {LONGEST} bytes, without control characters"));
    }
    Ok(())
}
