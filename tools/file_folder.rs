//! The folder of the file manager, and what keeps a path in it. `create_document` and `delete_file` go through it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use registry_core::{DataFolder, prelude::*, tenant_path, text::is_invisible};
use walkdir::WalkDir;

/// A document is no longer than this, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// What all files of a tenant may have, by default: in MiB, and in number, their folders included.
const MEBIBYTES: u64 = 1024;
const FILES: usize = 10_000;
/// What one user of the tenant may have of these.
const MEBIBYTES_OF_USER: u64 = 256;
const FILES_OF_USER: usize = 2500;
/// The attribute of a file, or a folder, that says who has made it. Not every file system keeps it.
#[cfg(unix)]
const OWNER: &str = "user.toolrack.owner";
/// So many bytes of a user's name are kept there.
const MAX_OWNER: usize = 512;
/// A path, and each name in it, is no longer than this, in bytes.
const MAX_PATH: usize = 512;
const MAX_NAME: usize = 128;
/// Folders are no deeper than this, the file's name included.
const MAX_DEPTH: usize = 8;

/// A folder in which tools make and delete files. Each tenant has its own.
///
/// Nothing outside of it is reached: paths go from name to name, and no link is followed. It is made with the first document,
/// for nobody else to read. On Unix only.
#[derive(Debug, Clone)]
pub struct FileFolder {
    path: Arc<PathBuf>,
    all: Room,
    of_user: Room,
}

/// So much may be kept.
#[derive(Debug, Clone, Copy)]
struct Room {
    mebibytes: u64,
    files: usize,
}

/// What is there, with what is to come.
struct Taken {
    bytes: u64,
    files: usize,
}

impl Room {
    fn has(self, taken: &Taken) -> bool {
        taken.bytes <= self.mebibytes.saturating_mul(1 << 20) && taken.files <= self.files
    }
}

/// The table `[file_manager]` of the configuration.
#[args]
struct FileManagerSettings {
    /// The folder; by default `files` in the data folder.
    folder: Option<PathBuf>,
    /// What all files of a tenant may have, in MiB.
    #[arg(default = MEBIBYTES, range = 1..)]
    max_total_mebibytes: u64,
    /// How many files and folders a tenant may have.
    #[arg(default = FILES, range = 1..)]
    max_files: usize,
    /// What the files that a user has made may have, in MiB.
    #[arg(default = MEBIBYTES_OF_USER, range = 1..)]
    max_mebibytes_per_user: u64,
    /// How many files and folders a user may have made.
    #[arg(default = FILES_OF_USER, range = 1..)]
    max_files_per_user: usize,
}

#[resource(table = "file_manager", needs = "Unix, where a folder can be kept closed")]
fn file_folder(
    ctx: &ToolContext,
    settings: Settings<FileManagerSettings>,
    data: Resource<DataFolder>,
) -> io::Result<Option<FileFolder>> {
    let folder = data.folder(settings.folder.as_deref(), "files")?;
    let made = || FileFolder {
        all: Room { mebibytes: settings.max_total_mebibytes, files: settings.max_files },
        of_user: Room { mebibytes: settings.max_mebibytes_per_user, files: settings.max_files_per_user },
        ..FileFolder::new(tenant_path(&folder, ctx.tenant()))
    };
    Ok(cfg!(unix).then(made))
}

impl FileFolder {
    /// The files in that folder. It may itself be a link.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let all = Room { mebibytes: MEBIBYTES, files: FILES };
        let of_user = Room { mebibytes: MEBIBYTES_OF_USER, files: FILES_OF_USER };
        Self { path: Arc::new(path.into()), all, of_user }
    }

    /// Makes a file of a user, which is there whole or not at all. None is written over.
    pub(crate) async fn create(
        &self,
        user: &str,
        path: &str,
        content: &str,
    ) -> Result<ToolResult, ToolError> {
        let place = Place::parse(path)?;
        if content.len() > MAX_BYTES {
            return Err(ToolError::invalid(format!(
                "the document has {} bytes, and {MAX_BYTES} are the most; shorten it, or write it as several files",
                content.len()
            )));
        }
        let owner = user.get(..user.floor_char_boundary(MAX_OWNER)).unwrap_or_default().to_owned();
        let content = content.to_owned();
        self.act(place, "Created", move |folder, place| folder.make(&owner, place, &content)).await
    }

    /// Whether a file of this size and the folders on the way to it fit beside what is there, and beside what its owner has. Where the folder
    /// itself cannot be read, writing to it says why.
    fn check_room(&self, owner: &str, place: &Place, size: usize) -> Result<(), Fault> {
        let new = || Taken {
            bytes: u64::try_from(size).unwrap_or(u64::MAX),
            files: 1 + self.missing_folders(place),
        };
        let (mut all, mut own) = (new(), new());
        let mut there = WalkDir::new(&*self.path).min_depth(1).into_iter().flatten();
        while self.all.has(&all) {
            if !self.of_user.has(&own) {
                return Err(Fault::Full(self.of_user, " of yours"));
            }
            let Some(entry) = there.next() else { return Ok(()) };
            let file = entry.metadata().ok().filter(|there| there.is_file());
            let bytes = file.map_or(0, |file| file.len());
            let whose = if is_of(entry.path(), owner) { vec![&mut all, &mut own] } else { vec![&mut all] };
            for taken in whose {
                taken.bytes = taken.bytes.saturating_add(bytes);
                taken.files += 1;
            }
        }
        Err(Fault::Full(self.all, ""))
    }

    /// How many folders are made on the way to a place.
    fn missing_folders(&self, place: &Place) -> usize {
        let mut way = self.path.to_path_buf();
        let is_missing = |name: &&String| {
            way.push(name);
            way.symlink_metadata().is_err()
        };
        place.folders.iter().filter(is_missing).count()
    }

    /// Deletes a file for good.
    pub(crate) async fn delete(&self, path: &str) -> Result<ToolResult, ToolError> {
        self.act(Place::parse(path)?, "Deleted", Self::delete_at).await
    }

    /// Does something with a file, which `done` names, on a thread where that holds nobody up.
    async fn act(
        &self,
        place: Place,
        done: &str,
        run: impl FnOnce(&Self, &Place) -> Result<(), Fault> + Send + 'static,
    ) -> Result<ToolResult, ToolError> {
        let folder = self.clone();
        let (outcome, place) = tokio::task::spawn_blocking(move || (run(&folder, &place), place)).await?;
        outcome.map_err(|fault| self.error_of(fault, &place))?;
        let verb = done.to_lowercase();
        Ok(ToolResult::new(json!({ &*verb: place.to_string() }))
            .with_message(format!("{done} {place}"))
            .with_side_effect(format!("{verb}:files/{place}")))
    }

    fn error_of(&self, fault: Fault, place: &Place) -> ToolError {
        match fault {
            Fault::Exists => ToolError::invalid(format!("there is already `{place}`; choose another name")),
            Fault::Missing => ToolError::invalid(format!("there is no file `{place}`; check the path")),
            Fault::Not(what, name) => {
                ToolError::invalid(format!("`{name}` is {what}; only files in folders are dealt with here"))
            }
            Fault::Full(Room { mebibytes, files }, whose) => {
                let full = format!(
                    "the folder of files is full: {mebibytes} MiB and {files} files{whose} are the most"
                );
                ToolError::failed(full).with_feedback(format!("The folder of files is full. Nothing more can be saved until files{whose} are deleted. Say so to the user."))
            }
            Fault::Io(error) => ToolError::failed(format!("{} in {}: {error}", place, self.path.display()))
                .with_feedback("The folder for files cannot be written to. Say so to the user."),
        }
    }
}

/// Why a file was not made or deleted.
#[derive(Debug)]
#[cfg_attr(not(unix), expect(dead_code, reason = "no file is made or deleted there"))]
enum Fault {
    Exists,
    Missing,
    /// There is no room for more: how much there may be, and of whom.
    Full(Room, &'static str),
    /// Something on the way is something else: what, and its name.
    Not(&'static str, String),
    Io(io::Error),
}

/// A path that stays in the folder: names, without `.`, `..` and what is hidden.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    folders: Vec<String>,
    name: String,
}

impl Place {
    fn parse(path: &str) -> Result<Self, ToolError> {
        let wrong = |what: &str| {
            let start = path.get(..path.floor_char_boundary(80)).unwrap_or_default();
            ToolError::invalid(format!(
                "`{}` {what}; write a path from the folder of files on, such as `notes/plan.md`",
                start.escape_debug()
            ))
        };
        if path.is_empty() {
            return Err(wrong("is no path"));
        }
        if path.len() > MAX_PATH {
            return Err(wrong("is too long"));
        }
        if path.starts_with('/') {
            return Err(wrong("begins with `/`"));
        }
        if path.contains(|c: char| c == '\\' || c.is_control() || is_invisible(c)) {
            return Err(wrong("has a character that no file's name may have"));
        }
        let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
        for name in &names {
            match name.as_str() {
                "" => return Err(wrong("has an empty name in it")),
                "." | ".." => return Err(wrong("leads through `.` or `..`")),
                name if name.starts_with(['.', '-', '~']) => {
                    return Err(wrong("has a name that begins with `.`, `-` or `~`"));
                }
                name if name.len() > MAX_NAME => return Err(wrong("has a name that is too long")),
                name if name.trim() != name => {
                    return Err(wrong("has a name that begins or ends with a space"));
                }
                _ => {}
            }
        }
        if names.len() > MAX_DEPTH {
            return Err(wrong("leads through too many folders"));
        }
        let name = names.pop().unwrap_or_default();
        Ok(Self { folders: names, name })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for folder in &self.folders {
            write!(f, "{folder}/")?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        fs::{DirBuilder, File},
        io::Write,
        os::{
            fd::{AsFd, OwnedFd},
            unix::fs::DirBuilderExt,
        },
    };

    use registry_core::random_id;
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    use rustix::fs::{XattrFlags, fsetxattr};
    use rustix::{
        fs::{
            AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fsync, linkat, mkdirat, open, openat,
            statat, unlinkat,
        },
        io::{Errno, retry_on_intr},
    };

    use super::{Fault, FileFolder, OWNER, Place};

    impl FileFolder {
        /// Makes a file where there is room for it. Where it is not made, neither are the folders on the way to it.
        pub(super) fn make(&self, owner: &str, place: &Place, content: &str) -> Result<(), Fault> {
            DirBuilder::new().recursive(true).mode(0o700).create(&*self.path).map_err(Fault::Io)?;
            let _alone = self.alone()?;
            self.check_room(owner, place, content.len())?;
            self.write(owner, place, content).inspect_err(|_| self.remove_empty_folders(place))
        }

        /// Deletes a file, and the folders on the way to it in which nothing is left: no tool deletes those, and they count.
        pub(super) fn delete_at(&self, place: &Place) -> Result<(), Fault> {
            let _alone = self.alone()?;
            self.remove(place)?;
            self.remove_empty_folders(place);
            Ok(())
        }

        /// Waits for others who change something in the folder, on other servers as well, so that what was counted still holds. A network's
        /// file system may have no such lock.
        fn alone(&self) -> Result<OwnedFd, Fault> {
            let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = open(&*self.path, folder, Mode::empty())?;
            match retry_on_intr(|| flock(&opened, FlockOperation::LockExclusive)) {
                Ok(()) | Err(Errno::BADF | Errno::NOLCK | Errno::NOTSUP) => Ok(opened),
                Err(error) => Err(error.into()),
            }
        }

        fn remove_empty_folders(&self, place: &Place) {
            let mut folders = place.folders.clone();
            while let Some(name) = folders.pop() {
                let above = self.open(&Place { folders: folders.clone(), name: name.clone() }, None);
                let removed = above.and_then(|above| Ok(unlinkat(&above, &name, AtFlags::REMOVEDIR)?));
                if removed.is_err() {
                    return;
                }
            }
        }

        fn write(&self, owner: &str, place: &Place, content: &str) -> Result<(), Fault> {
            let folder = self.open(place, Some(owner))?;
            // No path that a model writes begins with a dot.
            let id = random_id().map_err(Fault::Io)?;
            let hidden = format!(".new-{id}");
            let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&folder, &hidden, new, Mode::RUSR | Mode::WUSR)?);
            own(&file, owner);
            let written =
                file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).map_err(Fault::Io);
            // A link is refused where there is something of that name, whatever it is.
            let linked = written.and_then(|()| {
                linkat(&folder, &hidden, &folder, &place.name, AtFlags::empty()).map_err(Fault::from)
            });
            unlinkat(&folder, &hidden, AtFlags::empty())?;
            linked?;
            Ok(fsync(&folder)?)
        }

        fn remove(&self, place: &Place) -> Result<(), Fault> {
            let folder = self.open(place, None)?;
            let found = statat(&folder, &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
            let not = |what| Err(Fault::Not(what, place.to_string()));
            match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile if found.st_nlink > 1 => {
                    return not("a file that has other names too, by which it would remain");
                }
                FileType::RegularFile => {}
                FileType::Directory => return not("a folder"),
                FileType::Symlink => return not("a link"),
                _ => return not("no file"),
            }
            // Should it have become something else by now, it is the name that goes and nothing it leads to.
            unlinkat(&folder, &place.name, AtFlags::empty())?;
            Ok(fsync(&folder)?)
        }

        /// The folder that a place is in, reached name by name. Those that are missing are made for an owner.
        fn open(&self, place: &Place, owner: Option<&str>) -> Result<OwnedFd, Fault> {
            let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let mut opened = open(&*self.path, folder, Mode::empty())?;
            for (depth, name) in place.folders.iter().enumerate() {
                let mut made_by = None;
                if let Some(owner) = owner {
                    match mkdirat(&opened, name, Mode::RWXU) {
                        Ok(()) => made_by = Some(owner),
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                opened =
                    openat(&opened, name, folder | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| {
                        match error {
                            // For a link it is one or the other, by the system.
                            Errno::LOOP | Errno::NOTDIR | Errno::MLINK => {
                                let way = place.folders.get(..=depth).unwrap_or_default().join("/");
                                Fault::Not("no folder but a file or a link", way)
                            }
                            error => error.into(),
                        }
                    })?;
                if let Some(owner) = made_by {
                    own(&opened, owner);
                }
            }
            Ok(opened)
        }
    }

    /// Notes who has made a file or a folder, where the file system keeps that.
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn own(made: impl AsFd, owner: &str) {
        let _ = fsetxattr(made, OWNER, owner.as_bytes(), XattrFlags::empty());
    }

    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    fn own(_: impl AsFd, _: &str) {}

    impl From<Errno> for Fault {
        fn from(error: Errno) -> Self {
            match error {
                Errno::EXIST => Self::Exists,
                Errno::NOENT => Self::Missing,
                error => Self::Io(error.into()),
            }
        }
    }
}

/// Whether this owner has made a file or a folder.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn is_of(path: &Path, owner: &str) -> bool {
    let mut kept = [0; MAX_OWNER];
    let length = rustix::fs::lgetxattr(path, OWNER, &mut kept);
    length.is_ok_and(|length| kept.get(..length) == Some(owner.as_bytes()))
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn is_of(_: &Path, _: &str) -> bool {
    false
}

#[cfg(not(unix))]
impl FileFolder {
    fn make(&self, owner: &str, place: &Place, content: &str) -> Result<(), Fault> {
        self.check_room(owner, place, content.len())?;
        Err(Fault::Io(io::ErrorKind::Unsupported.into()))
    }

    #[allow(clippy::unused_self)]
    fn delete_at(&self, _: &Place) -> Result<(), Fault> {
        Err(Fault::Io(io::ErrorKind::Unsupported.into()))
    }
}

#[cfg(test)]
#[cfg(unix)]
#[path = "_file_folder_tests.rs"]
mod tests;
