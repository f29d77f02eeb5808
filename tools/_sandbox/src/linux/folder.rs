//! The folder of one run: the script, and beside it the folder that the program may write to.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use crate::job::Job;

pub(super) struct Folder {
    pub(super) path: PathBuf,
}

impl Folder {
    /// What the program may write to, in the folder.
    pub(super) const WORK: &str = "work";
    /// A file that only the sandbox keeps a program from reading, for a trial of it.
    pub(super) const FORBIDDEN: &str = "forbidden";

    /// Makes a folder that nobody else can look into; all in it is the user's whom the program runs as.
    pub(super) fn create(job: &Job, user: Option<u32>) -> io::Result<Self> {
        let private = fs::Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix("toolrack-").permissions(private).tempdir_in(&job.folder)?;
        let work = folder.path().join(Self::WORK);
        fs::create_dir(&work)?;
        fs::set_permissions(&work, fs::Permissions::from_mode(0o700))?;
        let mut files = vec![(job.program.script_name.as_str(), job.program.script.as_str())];
        if job.trial.is_some() {
            files.push((Self::FORBIDDEN, "forbidden"));
        }
        for (name, text) in files {
            // A name with a `/` in it is a fault of the caller's, not a way out.
            if name.is_empty() || name.contains('/') || name == Self::WORK {
                return Err(io::Error::other(format!("`{name}` is no name for a script")));
            }
            let file = folder.path().join(name);
            fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&file)?
                .write_all(text.as_bytes())?;
            chown(&file, user, user)?;
        }
        chown(&work, user, user)?;
        chown(folder.path(), user, user)?;
        Ok(Self { path: folder.keep() })
    }

    /// Removes it with all that is in it, whatever the program has made of it.
    pub(super) fn remove(&self) -> io::Result<()> {
        flatten(&self.path)?;
        fs::remove_dir(&self.path)
    }
}

/// Empties a folder. Folders in it are moved to its top before they are emptied, so that neither the length of a path nor the
/// number of open files sets a bound to how deep they lie; and are made accessible first.
fn flatten(top: &Path) -> io::Result<()> {
    let mut moved = 0_u64;
    let mut folders = Vec::new();
    empty(top, top, &mut moved, &mut folders)?;
    while let Some(folder) = folders.pop() {
        empty(&folder, top, &mut moved, &mut folders)?;
        fs::remove_dir(&folder)?;
    }
    Ok(())
}

fn empty(folder: &Path, top: &Path, moved: &mut u64, folders: &mut Vec<PathBuf>) -> io::Result<()> {
    let accessible = || fs::Permissions::from_mode(0o700);
    fs::set_permissions(folder, accessible())?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
            continue;
        }
        // A folder without permissions cannot be moved either.
        fs::set_permissions(entry.path(), accessible())?;
        if folder == top && entry.file_name().to_string_lossy().starts_with(".moved-") {
            continue;
        }
        *moved += 1;
        let place = top.join(format!(".moved-{moved}"));
        fs::rename(entry.path(), &place)?;
        folders.push(place);
    }
    Ok(())
}
