//! Finds the files that can be read below a folder.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::{
    DocumentKind,
    read::{MAX_BYTES, begins_as_text},
};

/// What is below some paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The files that can be read by their names, each once.
    pub files: Vec<PathBuf>,
    /// What is left out and why, such as files that are too large. Files of other kinds in a folder are not among them.
    pub skipped: Vec<(PathBuf, String)>,
    /// How many files in folders are of other kinds.
    pub others: usize,
}

/// The files that are named, and those in the folders that are named and in the folders in them. Hidden ones are left out, and so are
/// links in folders; what is named itself is taken as it is.
pub fn below(paths: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in paths {
        if path.is_dir() {
            found.folder(path);
        } else {
            // Whether it can be read shows when it is.
            found.files.push(path.clone());
        }
    }
    found.files.sort();
    found.files.dedup();
    found
}

impl Found {
    fn folder(&mut self, folder: &Path) {
        let mut hidden = Vec::new();
        let entries = WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(|entry| {
            let is_seen = entry.depth() == 0 || !is_hidden(entry);
            if !is_seen {
                hidden.push(entry.path().to_owned());
            }
            is_seen
        });
        for entry in entries {
            match entry {
                Ok(entry) => self.entry(&entry),
                Err(error) => {
                    let path = error.path().unwrap_or(folder).to_owned();
                    self.skipped.push((
                        path,
                        error.into_io_error().map_or("a loop of links".to_owned(), |error| error.to_string()),
                    ));
                }
            }
        }
        self.skipped.extend(hidden.into_iter().map(|path| (path, "it is hidden".to_owned())));
    }

    fn entry(&mut self, entry: &DirEntry) {
        if entry.path_is_symlink() {
            self.skipped.push((entry.path().to_owned(), "it is a link".to_owned()));
        } else if entry.file_type().is_dir() {
        } else if DocumentKind::of(entry.path()).is_none() {
            self.others += 1;
        } else if !entry.file_type().is_file() {
            self.skipped.push((entry.path().to_owned(), "it is no file".to_owned()));
        } else if DocumentKind::by_extension(entry.path()).is_none() && !begins_as_text(entry.path()) {
            self.others += 1;
        } else if entry.metadata().is_ok_and(|about| about.len() > MAX_BYTES) {
            let reason = format!("it has more than {} MiB", MAX_BYTES / 1024 / 1024);
            self.skipped.push((entry.path().to_owned(), reason));
        } else {
            self.files.push(entry.path().to_owned());
        }
    }
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with('.')
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn p6_folders_are_searched_and_what_is_left_out_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::create_dir_all(at(".git")).unwrap();
        for name in ["a/one.md", "a/b/two.PDF", "a/image.png", ".git/x.md", "a/.secret.txt", "z.csv"] {
            fs::write(at(name), "x").unwrap();
        }
        fs::write(at("a/README"), "Tea.").unwrap();
        fs::write(at("a/data"), b"\x7f\0\x01").unwrap();
        fs::File::create(at("large.txt")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let found = below(&[folder.path().to_owned(), at("z.csv"), at("none.md")]);
        let files = [at("a/README"), at("a/b/two.PDF"), at("a/one.md"), at("none.md"), at("z.csv")];
        assert_eq!((found.files.as_slice(), found.others), (files.as_slice(), 2));
        let mut skipped: Vec<_> = found.skipped.iter().map(|(path, _)| path.clone()).collect();
        skipped.sort();
        assert_eq!(skipped, [at(".git"), at("a/.secret.txt"), at("large.txt")]);
    }

    #[cfg(unix)]
    #[test]
    fn p6_links_in_a_folder_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.md"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
        let found = below(&[folder.path().to_owned()]);
        assert_eq!((found.files.len(), found.skipped.len()), (1, 2), "{found:?}");
    }
}
