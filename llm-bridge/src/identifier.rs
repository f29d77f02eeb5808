//! What can name a user, a tenant, a persona or a module.

use registry_core::text::is_invisible;

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

/// Whether a new persona may be called so. Where it is written down, commas separate several.
///
/// # Errors
/// What it has to be.
pub(crate) fn check_new_persona(name: &str) -> Result<(), String> {
    check_named_in_path(name)?;
    match name.contains(',') {
        true => Err("without commas, which separate several".to_owned()),
        false => Ok(()),
    }
}

/// Whether an address can name it: in a path, dots alone lead to another.
fn check_named_in_path(text: &str) -> Result<(), String> {
    check_identifier(text)?;
    match text {
        "." | ".." => Err("more than dots".to_owned()),
        _ => Ok(()),
    }
}

/// Whether a new user may have this id: by what nobody sees in it, it could look like another's.
///
/// # Errors
/// What it has to be.
pub(crate) fn check_new_user(id: &str) -> Result<(), String> {
    check_named_in_path(id)?;
    if id.contains(is_invisible) {
        return Err("without characters that nobody sees or that turn the text around".to_owned());
    }
    if id.split(' ').any(|word| word.is_empty() || word.contains(char::is_whitespace)) {
        return Err("without spaces at its ends, several together, or others than the usual one".to_owned());
    }
    Ok(())
}

/// The longest name of a key, in bytes.
const LONGEST_OF_A_KEY: usize = 64;

/// Whether a key may be called this, which is shown to people. Empty is without a name.
///
/// # Errors
/// What it has to be.
pub(crate) fn check_key_name(name: &str) -> Result<(), String> {
    if name.len() > LONGEST_OF_A_KEY || name.contains(|c: char| c.is_control() || is_invisible(c)) {
        return Err(format!(
            "a text of at most {LONGEST_OF_A_KEY} bytes, without control characters and others that nobody sees"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m9_the_name_of_a_key_is_short_and_seen_whole() {
        for name in ["", "laptop", &"x".repeat(LONGEST_OF_A_KEY), "Büro, 2. Stock"] {
            assert_eq!(check_key_name(name), Ok(()), "{name}");
        }
        for name in [&"x".repeat(LONGEST_OF_A_KEY + 1), "lap\ntop", "\u{202e}potpal", "a\0"] {
            assert!(check_key_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn no_new_user_looks_like_another() {
        assert!(check_new_user("ada").is_ok() && check_new_user("می\u{200c}خواهم").is_ok());
        for id in ["ada\u{200b}", "\u{202e}ada", "ada\u{e0041}"] {
            assert!(check_new_user(id).unwrap_err().contains("nobody sees"), "{id:?}");
            assert!(check_identifier(id).is_ok(), "who is there already stays");
        }
        assert!(check_new_user("Ada King").is_ok());
        for id in ["ada ", " ada", "ada  king", "ada\u{a0}king", "ada\u{3000}"] {
            assert!(check_new_user(id).unwrap_err().contains("spaces"), "{id:?}");
        }
    }

    #[test]
    fn whatever_is_made_can_be_named_in_an_address() {
        for id in [".", ".."] {
            assert_eq!(check_new_user(id).unwrap_err(), "more than dots");
            assert_eq!(check_new_persona(id).unwrap_err(), "more than dots");
            assert!(check_identifier(id).is_ok(), "who is there already stays");
        }
        assert!(check_new_user("...").is_ok() && check_new_persona("a.b").is_ok());
        assert!(check_new_persona("reading,writing").unwrap_err().contains("commas"));
    }
}
