//! Names that every provider takes.

use quote::ToTokens;

use crate::errors::Errors;

/// A name that every provider takes.
pub(crate) fn check_name(name: &str, at: impl ToTokens, errors: &mut Errors) {
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !fits {
        errors.push(
            at,
            format!("`{name}` is not a name that every model takes"),
            "use at most 64 of a-z, 0-9 and `_`, a letter first; `#[tool(name = \"…\")]` gives another name than the function's",
        );
    }
}

/// A name of an argument that every provider takes.
pub(crate) fn check_argument_name(name: &str, at: impl ToTokens, errors: &mut Errors) {
    let fits = (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if !fits {
        errors.push(
            at,
            format!("`{name}` is not a name of an argument that every model takes"),
            "use 1 to 64 of a-z, A-Z, 0-9, `_`, `.` and `-`; `#[arg(rename = \"…\")]` gives another name",
        );
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn a_name_is_one_that_every_provider_takes() {
        for (name, fits) in [
            ("a", true),
            ("web_search2", true),
            ("", false),
            ("_a", false),
            ("2a", false),
            ("A", false),
            ("ä", false),
        ] {
            let mut errors = Errors::new("test");
            check_name(name, quote!(name), &mut errors);
            assert_eq!(errors.is_empty(), fits, "{name}");
        }
        let mut errors = Errors::new("test");
        check_name(&"a".repeat(65), quote!(name), &mut errors);
        assert!(!errors.is_empty());
    }
}
