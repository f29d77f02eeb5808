//! Moves the files of a backup to their places, and those that are there aside.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use registry_core::private::private_folder;

use super::place::{DATA, DOCUMENTS, KEY, Places, STORE, entries, is_ours, tenants_of};
use crate::cli::settings::Place;

/// What was moved, and from where.
#[derive(Default)]
struct Moves(Vec<(PathBuf, PathBuf)>);

impl Moves {
    /// To where nothing is, on another disk as a copy.
    fn one(&mut self, from: PathBuf, to: PathBuf) -> io::Result<()> {
        let renamed = fs::rename(&from, &to);
        let crosses = |error: &io::Error| error.kind() == io::ErrorKind::CrossesDevices;
        if renamed.as_ref().is_err_and(crosses) && from.is_file() {
            self.0.push((from.clone(), to.clone()));
            return fs::copy(from, to).map(drop);
        }
        renamed?;
        self.0.push((from, to));
        Ok(())
    }

    fn back(self) {
        for (from, to) in self.0.into_iter().rev() {
            // What was copied to another disk is still where it was.
            let undone = if from.exists() { fs::remove_file(&to) } else { fs::rename(&to, &from) };
            if let Err(cause) = undone {
                tracing::error!(from = %to.display(), to = %from.display(), %cause, "not_moved_back");
            }
        }
    }
}

/// Moves what is there aside, and what was unpacked to its place; where that fails, all goes back. Whether anything was there.
pub(super) fn put_in_place(staging: &Path, aside: &Path, places: &Places<'_>) -> io::Result<bool> {
    let mut moves = Vec::new();
    for (part, place) in [(STORE, &places.store), (DOCUMENTS, &places.documents)] {
        let Place::File(file) = place else { continue };
        let name = format!("{part}.db");
        moves.push((staging.join(&name), file.clone()));
        // Of the new files none has anything beside it.
        for suffix in ["-wal", "-shm"] {
            moves.push((staging.join("none"), PathBuf::from(format!("{}{suffix}", file.display()))));
        }
        if part == DOCUMENTS {
            moves.push((tenants_of(&staging.join(&name)), tenants_of(file)));
        }
    }
    if staging.join(KEY).exists() {
        moves.push((staging.join(KEY), places.key.clone()));
    }
    for (from, name) in entries(&staging.join(DATA))? {
        moves.push((from, places.data.join(name)));
    }
    // All of the data folder goes aside, not only what something takes the place of.
    let there = entries(&places.data)?.into_iter();
    let there = there.filter(|(path, name)| !places.is_key(path) && !name.to_str().is_some_and(is_ours));
    let mut old: Vec<PathBuf> = there.map(|(path, _)| path).collect();
    old.extend(
        moves.iter().map(|(_, to)| to.clone()).filter(|to| to.exists() && !to.starts_with(&places.data)),
    );
    // A key stays, unless the backup has another.
    let keys = moves.iter().filter(|(from, to)| places.is_key(to) && from.exists() && to.exists());
    old.extend(keys.map(|(_, to)| to.clone()));
    let mut moved = Moves::default();
    let all = move_all(&mut moved, &old, moves, aside, places);
    if all.is_err() {
        moved.back();
    }
    all.map(|()| !old.is_empty())
}

fn move_all(
    moved: &mut Moves,
    old: &[PathBuf],
    new: Vec<(PathBuf, PathBuf)>,
    aside: &Path,
    places: &Places<'_>,
) -> io::Result<()> {
    for path in old {
        // What is elsewhere stays on its disk.
        let to = match path.strip_prefix(&places.data) {
            Ok(_) => {
                private_folder(aside)?;
                aside.join(path.file_name().unwrap_or_default())
            }
            Err(_) => {
                let ended = aside.file_name().unwrap_or_default().to_string_lossy();
                PathBuf::from(format!("{}.{ended}", path.display()))
            }
        };
        if path.exists() {
            fs::rename(path, &to)?;
            moved.0.push((path.clone(), to));
        }
    }
    for (from, to) in new {
        if !from.exists() {
            continue;
        }
        if let Some(folder) = to.parent() {
            private_folder(folder)?;
        }
        moved.one(from, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_moves_of_which_one_fails_are_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["store.db", "new.db"] {
            fs::write(path(name), name).unwrap();
        }
        let mut moves = Moves::default();
        moves.one(path("store.db"), path("aside.db")).unwrap();
        moves.one(path("new.db"), path("store.db")).unwrap();
        assert_eq!(fs::read_to_string(path("store.db")).unwrap(), "new.db");
        moves.one(path("new.db"), path("no-such-folder/new.db")).unwrap_err();
        moves.back();
        for name in ["store.db", "new.db"] {
            assert_eq!(fs::read_to_string(path(name)).unwrap(), name);
        }
        assert!(!path("aside.db").exists());
    }
}
