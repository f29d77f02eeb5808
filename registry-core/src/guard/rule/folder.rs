//! Whether a path lies in a folder, by its text alone.
//!
//! What a path leads to is not known here: it may be on another machine. So a path with anything that could lead elsewhere than it reads,
//! such as `..` or a character that shells and file systems give a meaning, lies in no folder. Links cannot be seen in a text.

use crate::text::is_invisible;

/// The longest path that is looked at, in bytes.
const MAX_PATH: usize = 1024;
/// Characters that stand for something else somewhere: patterns, variables, encodings, other volumes, commands.
const MEANING_MORE: &str = "\\%$~*?[]{}:|<>;&\"'`!";

/// A path, name by name.
struct Names<'p> {
    from_root: bool,
    names: Vec<&'p str>,
}

impl<'p> Names<'p> {
    fn of(path: &'p str) -> Option<Self> {
        let is_odd = |c: char| MEANING_MORE.contains(c) || c.is_control() || is_invisible(c);
        if path.len() > MAX_PATH || path.starts_with("//") || path.contains(is_odd) {
            return None;
        }
        let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        // Some systems leave out dots and spaces at the end of a name, so that `.. ` is `..` there.
        let is_plain = |name: &&str| !name.ends_with('.') && name.trim() == *name;
        names.iter().all(is_plain).then(|| Self { from_root: path.starts_with('/'), names })
    }
}

/// The folder that a path lies in, as it is written to a person; `None` for the outermost, where everything would be.
pub(super) fn folder_of(path: &str) -> Option<String> {
    let Names { from_root, mut names } = Names::of(path)?;
    names.pop();
    let root = if from_root { "/" } else { "" };
    (!names.is_empty()).then(|| format!("{root}{}", names.join("/")))
}

/// Whether a path lies in a folder, however deep.
pub(super) fn is_in(path: &str, folder: &str) -> bool {
    let (Some(path), Some(folder)) = (Names::of(path), Names::of(folder)) else { return false };
    !folder.names.is_empty()
        && path.from_root == folder.from_root
        && path.names.len() > folder.names.len()
        && path.names.starts_with(&folder.names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b17_a_path_lies_in_the_folder_that_it_reads_as() {
        for (path, folder) in [
            ("notes/a.md", "notes"),
            ("./notes//./a.md", "notes"),
            ("/srv/notes/a.md", "/srv/notes"),
            ("notes/old/a b.md/", "notes/old"),
            ("notes/.hidden", "notes"),
        ] {
            assert_eq!(folder_of(path).as_deref(), Some(folder), "{path}");
            assert!(is_in(path, folder), "{path}");
        }
        assert!(is_in("notes/deep/er/a.md", "notes"));
    }

    #[test]
    fn b17_no_folder_is_offered_that_would_be_everything() {
        for path in ["a.md", "/a.md", "./a.md", "", "/", "."] {
            assert_eq!(folder_of(path), None, "{path}");
        }
        assert!(!is_in("a.md", "") && !is_in("/a.md", "/") && !is_in("a.md", "."));
    }

    #[test]
    fn b17_a_path_that_leads_elsewhere_than_it_reads_lies_in_no_folder() {
        for path in [
            "notes",
            "notes/",
            "notes/.",
            "notesy/a.md",
            "Notes/a.md",
            "/notes/a.md",
            "notes/../secret",
            "notes/a/../../secret",
            "notes/.. /secret",
            "notes/.../secret",
            "notes/..",
            "notes/ ../secret",
            "notes/%2e%2e/secret",
            "notes\\..\\secret",
            "notes/..\\secret",
            "notes/$HOME",
            "notes/~",
            "notes/*",
            "notes/{a,../../b}",
            "notes/a:stream",
            "notes/a\u{0}/../b",
            "notes/\u{202e}a",
            "notes/a;rm",
            "notes/`id`",
            "//notes/a.md",
            "file:notes/a.md",
        ] {
            assert!(!is_in(path, "notes"), "{path:?}");
        }
        assert!(!is_in("srv/notes/a.md", "/srv/notes"));
        assert!(!is_in(&format!("notes/{}", "a/".repeat(600)), "notes"));
    }
}
