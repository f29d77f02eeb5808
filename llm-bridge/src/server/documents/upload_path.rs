//! The path of an uploaded document.

use registry_core::text::visible;

/// The folder of all uploads.
const UPLOADS: &str = "uploads";
/// The longest name, in bytes.
const LONGEST: usize = 1024;

/// The folder of a user's uploads. It is unique, and not inside another user's.
pub(crate) fn uploads_of(user: &str) -> String {
    let user = match user {
        "." | ".." => user.replace('.', "%2E"),
        user => user.replace('%', "%25").replace('/', "%2F").replace('\\', "%5C"),
    };
    format!("{UPLOADS}/{user}")
}

/// Whether the path is that folder, or inside it.
pub(super) fn is_below(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path for a file name, which may include folders.
///
/// # Errors
/// When the name is invalid.
pub(super) fn upload_path(user: &str, name: &str) -> Result<String, String> {
    check_name(name)?;
    Ok(format!("{}/{name}", uploads_of(user)))
}

/// Checks a file name, which may include folders.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.len() > LONGEST {
        return Err(format!("the name has more than {LONGEST} bytes; give it a shorter one"));
    }
    if name.chars().any(|c| c.is_control() || c == '\\') || visible(name) != name {
        return Err(
            "the name has `\\` or characters that nobody sees in it; folders end in `/`, as in `notes/tea.md`"
                .to_owned(),
        );
    }
    if name.split('/').any(|part| part.trim().is_empty() || matches!(part, "." | "..")) {
        return Err(
            "each part of the name has to be a name, as in `notes/tea.md`: not empty, `.` or `..`".to_owned()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_a_file_that_was_sent_is_in_the_folder_of_its_user() {
        assert_eq!(upload_path("ada", "notes/Grüner Tee.md").unwrap(), "uploads/ada/notes/Grüner Tee.md");
        assert_eq!(upload_path("ada", "...md").unwrap(), "uploads/ada/...md");
        for (user, folder) in [
            ("a/b", "uploads/a%2Fb"),
            ("..", "uploads/%2E%2E"),
            ("a%2Fb", "uploads/a%252Fb"),
            ("a\\", "uploads/a%5C"),
        ] {
            assert_eq!(uploads_of(user), folder);
        }
    }

    #[test]
    fn p6_a_name_that_leads_elsewhere_is_refused() {
        let long = "x".repeat(LONGEST + 1);
        for name in [
            "../bob/a.md",
            "a/../../b.md",
            "..",
            ".",
            "a/./b.md",
            "/a.md",
            "a//b.md",
            "a/",
            "",
            " ",
            "a/ /b.md",
            "a\\b.md",
            "a\nb.md",
            "a\u{85}.md",
            "a\u{202e}dm.exe.md",
            "a\u{2028}b.md",
            "no\u{ad}te.md",
            "te\u{200d}a.md",
            &long,
        ] {
            assert!(upload_path("ada", name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn p6_nobody_has_another_users_uploads() {
        assert!(is_below("uploads/ada", "uploads/ada/tea.md") && is_below("uploads/ada", "uploads/ada"));
        for path in [
            "uploads/adam/tea.md",
            "uploads/bob/ada/tea.md",
            "uploads",
            "/uploads/ada/tea.md",
            "",
            "Uploads/ada/x",
        ] {
            assert!(!is_below("uploads/ada", path), "{path}");
        }
    }
}
