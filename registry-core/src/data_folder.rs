//! Where a program keeps its data.

use std::path::{Path, PathBuf};

/// The folder in which the program keeps its data. A host provides it as a resource, for tools and resources that keep files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolder(PathBuf);

impl DataFolder {
    /// That folder. An absolute path stays right when the current folder changes.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Its path. It may not exist yet.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder that a setting names, which may be relative to the current one; where it names none, the one of that name in here.
    ///
    /// # Errors
    /// When the current folder is gone.
    pub fn folder(&self, setting: Option<&Path>, usual: &str) -> std::io::Result<PathBuf> {
        match setting.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => std::path::absolute(path),
            None => Ok(self.0.join(usual)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_wins_and_an_empty_one_is_none() {
        let data = DataFolder::new("/data");
        assert_eq!(data.folder(None, "inbox").unwrap(), Path::new("/data/inbox"));
        assert_eq!(data.folder(Some(Path::new("")), "inbox").unwrap(), Path::new("/data/inbox"));
        assert_eq!(data.folder(Some(Path::new("/notes")), "inbox").unwrap(), Path::new("/notes"));
        let relative = data.folder(Some(Path::new("notes")), "inbox").unwrap();
        assert!(relative.is_absolute() && relative.ends_with("notes"), "{}", relative.display());
    }
}
