//! Which files have been saved. The files are looked at again and again, which takes a few milliseconds each time: it works on every
//! file system and with every editor, and leaves out `target`, which notifications of whole folders would drown in.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How often the files are looked at.
const POLL: Duration = Duration::from_millis(100);
/// How long they have to stay the same: an editor may write several, or one in steps.
const SETTLES: Duration = Duration::from_millis(30);
/// So often at most it is waited for that.
const MAX_SETTLING: usize = 20;
/// The most files that are looked at.
const MAX_FILES: usize = 50_000;

/// What a file is known by: the time of its last change, and its length.
type Version = (SystemTime, u64);
type Files = BTreeMap<PathBuf, Version>;

/// The files whose change matters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Watched {
    /// Folders whose sources matter, with those in folders in them.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Single files, which need not exist.
    pub(super) files: BTreeSet<PathBuf>,
    /// Files that are read at the start and need no build.
    pub(super) settings: BTreeSet<PathBuf>,
    /// Folders that are left out.
    pub(super) left_out: BTreeSet<PathBuf>,
}

/// Notices saved files.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    watched: Watched,
    seen: Files,
    /// When it has looked last and found nothing new.
    looked: Option<SystemTime>,
}

/// Files that were saved or removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) files: Vec<PathBuf>,
    /// Whether a build is needed.
    pub(super) of_sources: bool,
    /// When the last was saved.
    pub(super) at: SystemTime,
}

impl Watcher {
    /// Watches these files. Those that are new here count as changed if they were saved later than `since`.
    pub(super) fn watch(&mut self, watched: Watched, since: SystemTime) {
        if self.watched == watched {
            return;
        }
        let is_elsewhere = self.watched.folders != watched.folders;
        // What has come to where it was watched already is a change, however long ago it was saved: it may have been moved.
        let known = self.watched.versions();
        self.watched = watched;
        let now = self.watched.versions();
        if is_elsewhere {
            // What is not watched any more was not removed.
            self.seen.retain(|file, _| now.contains_key(file));
        }
        for (file, version) in now {
            if version.0 <= since && !known.contains_key(&file) {
                self.seen.entry(file).or_insert(version);
            }
        }
    }

    /// Waits for changes since the last ones.
    pub(super) async fn changes(&mut self) -> Changes {
        loop {
            let looks = SystemTime::now();
            let mut now = self.look().await;
            if now == self.seen {
                self.looked = Some(looks);
            } else {
                for _ in 0..MAX_SETTLING {
                    tokio::time::sleep(SETTLES).await;
                    let later = self.look().await;
                    let is_same = later == now;
                    now = later;
                    if is_same && !self.is_being_written(&now) {
                        break;
                    }
                }
                let changes = self.compare(&now);
                self.renew(&mut now);
                self.seen = now;
                // A file that was written and taken back is none.
                if !changes.files.is_empty() {
                    return changes;
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn look(&self) -> Files {
        let watched = self.watched.clone();
        tokio::task::spawn_blocking(move || watched.versions()).await.unwrap_or_default()
    }

    /// Whether a file has lost all that stood in it: most editors truncate a file before they write it, and may be kept from writing for
    /// a while.
    fn is_being_written(&self, now: &Files) -> bool {
        let had_content = |file: &PathBuf| self.seen.get(file).is_some_and(|version| version.1 > 0);
        now.iter().any(|(file, version)| version.1 == 0 && had_content(file))
    }

    /// Gives sources that were replaced by older ones, as `cp -p` does it, the present time: Cargo builds again what is newer than its last
    /// build.
    fn renew(&self, now: &mut Files) {
        for (file, version) in now {
            let is_older = self.looked.is_some_and(|looked| version.0 < looked);
            if is_older
                && self.seen.get(file).is_some_and(|seen| seen != version)
                && !self.watched.settings.contains(file)
                && let Ok(opened) = fs::File::options().append(true).open(file)
                && opened.set_modified(SystemTime::now()).is_ok()
                && let Ok(about) = opened.metadata()
            {
                version.0 = saved(&about);
            }
        }
    }

    fn compare(&self, now: &Files) -> Changes {
        let saved = now.iter().filter(|(file, version)| self.seen.get(*file) != Some(*version));
        // One that was moved has the time at which it was saved elsewhere.
        let at = saved.clone().map(|(_, version)| version.0).max().max(self.looked);
        let removed = self.seen.keys().filter(|file| !now.contains_key(*file));
        let files: Vec<PathBuf> = saved.map(|(file, _)| file).chain(removed).cloned().collect();
        let of_sources = files.iter().any(|file| !self.watched.settings.contains(file));
        Changes { files, of_sources, at: at.unwrap_or_else(SystemTime::now) }
    }
}

impl Watched {
    fn versions(&self) -> Files {
        let mut found = Files::new();
        self.folders.iter().for_each(|folder| self.look_into(folder, &mut found));
        for file in self.files.iter().chain(&self.settings) {
            note(file.clone(), &mut found);
        }
        found
    }

    fn look_into(&self, folder: &Path, found: &mut Files) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") || found.len() >= MAX_FILES {
                continue;
            }
            let path = entry.path();
            // A link may lead in circles; its file counts, its folder does not.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && (self.left_out.contains(&path) || is_built(&name)) => {}
                Ok(kind) if kind.is_dir() => self.look_into(&path, found),
                Ok(_) if is_source(&path) => note(path, found),
                _ => {}
            }
        }
    }
}

/// Whether a folder of that name has what tools have made.
fn is_built(name: &OsStr) -> bool {
    name == "target" || name == "node_modules"
}

/// Other files count where Cargo says that the program is built from them.
fn is_source(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
        || file.file_name().is_some_and(|name| name == "Cargo.toml")
}

fn note(file: PathBuf, found: &mut Files) {
    if let Ok(about) = fs::metadata(&file)
        && about.is_file()
    {
        found.insert(file, (saved(&about), about.len()));
    }
}

fn saved(about: &fs::Metadata) -> SystemTime {
    about.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(changes: &Changes, root: &Path) -> Vec<String> {
        let name = |file: &PathBuf| file.strip_prefix(root).unwrap().display().to_string();
        changes.files.iter().map(name).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn b18_a_file_that_an_editor_has_truncated_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("toolrack.toml");
        fs::write(&file, "1").unwrap();
        let watched = Watched { settings: [file.clone()].into(), ..Watched::default() };
        let mut watcher = Watcher::default();
        watcher.watch(watched, SystemTime::now());
        fs::write(&file, "").unwrap();
        let write = async {
            tokio::time::sleep(POLL + 3 * SETTLES).await;
            fs::write(&file, "22").unwrap();
        };
        let (changes, ()) = tokio::join!(watcher.changes(), write);
        assert_eq!(changes.files, std::slice::from_ref(&file));
        assert_eq!(watcher.seen[&file].1, 2);
        // One that stays empty is taken as it is.
        fs::write(&file, "").unwrap();
        assert_eq!(watcher.changes().await.files, std::slice::from_ref(&file));
        assert_eq!(watcher.seen[&file].1, 0);
    }

    #[tokio::test]
    async fn b18_files_count_however_they_are_saved_and_what_is_built_does_not() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for folder in ["tools/module", "target/debug", "data", ".git"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["tools/a.rs", "tools/module/b.rs", "prompt.md", "toolrack.toml"] {
            fs::write(at(file), "1").unwrap();
        }
        let watched = Watched {
            folders: [root.clone()].into(),
            files: [at("prompt.md")].into(),
            settings: [at("toolrack.toml"), at("more.toml")].into(),
            left_out: [at("data")].into(),
        };
        let mut watcher = Watcher::default();
        watcher.watch(watched, SystemTime::now());

        let noise =
            ["target/debug/c.rs", "data/d.rs", ".git/e.rs", "tools/.f.rs.swp", "notes.md", "tools/g.rs~"];
        noise.iter().for_each(|file| fs::write(at(file), "1").unwrap());
        let quiet = tokio::time::timeout(3 * POLL, watcher.changes()).await;
        assert!(quiet.is_err(), "{quiet:?}");

        // Written beside and renamed over; in a new folder; removed; not a Rust file.
        fs::write(at("tools/a.tmp"), "22").unwrap();
        fs::rename(at("tools/a.tmp"), at("tools/a.rs")).unwrap();
        let changes = watcher.changes().await;
        assert_eq!((names(&changes, &root), changes.of_sources), (vec!["tools/a.rs".to_owned()], true));
        fs::create_dir(at("tools/new")).unwrap();
        fs::write(at("tools/new/h.rs"), "1").unwrap();
        fs::remove_file(at("tools/module/b.rs")).unwrap();
        fs::write(at("prompt.md"), "22").unwrap();
        let changes = watcher.changes().await;
        assert_eq!(names(&changes, &root), ["prompt.md", "tools/new/h.rs", "tools/module/b.rs"]);

        // A file that was saved long ago and is moved here, also while the program is built and watches more than before.
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        let moved = |from: &str, to: &str| {
            fs::write(at(from), "1").unwrap();
            fs::File::options().append(true).open(at(from)).unwrap().set_modified(long_ago).unwrap();
            fs::rename(at(from), at(to)).unwrap();
        };
        moved("data/i", "tools/i.rs");
        let changes = watcher.changes().await;
        assert_eq!(names(&changes, &root), ["tools/i.rs"]);
        assert!(changes.at.elapsed().unwrap() < Duration::from_secs(60), "{changes:?}");
        let built = SystemTime::now();
        moved("data/j", "tools/j.rs");
        fs::write(at("listed.md"), "1").unwrap();
        let mut more = watcher.watched.clone();
        more.files.insert(at("listed.md"));
        watcher.watch(more, built + Duration::from_secs(1));
        assert_eq!(names(&watcher.changes().await, &root), ["tools/j.rs"]);

        // An older file in the place of one that is built: Cargo sees it by its time, and it counts once.
        moved("data/k", "tools/a.rs");
        assert_eq!(names(&watcher.changes().await, &root), ["tools/a.rs"]);
        assert!(fs::metadata(at("tools/a.rs")).unwrap().modified().unwrap() > built);
        let quiet = tokio::time::timeout(3 * POLL, watcher.changes()).await;
        assert!(quiet.is_err(), "{quiet:?}");

        // Settings need no build, also where the file is new.
        fs::write(at("more.toml"), "1").unwrap();
        let changes = watcher.changes().await;
        assert_eq!((names(&changes, &root), changes.of_sources), (vec!["more.toml".to_owned()], false));
    }
}
