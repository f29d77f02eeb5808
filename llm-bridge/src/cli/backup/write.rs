//! Makes a backup, while servers may run.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use registry_core::clock::{Clock, SystemClock};
use serde_json::json;
use tempfile::{NamedTempFile, TempDir};
use toolrack_stores::backup::{copy_sqlite, is_sqlite};

use super::{
    BackupArguments,
    archive::{FORMAT, Manifest, Writer, free},
    place::{DATA, KEY, MAKING, Places, entries},
};
use crate::{
    cli::{
        audit, made_by_operator,
        out::{count, tell},
        postgres::dump_tables,
        settings::Settings,
        store::Stores,
    },
    recorded::Change,
};

/// Folders of the data folder are not deeper than this.
const MAX_DEPTH: usize = 64;
/// A row of PostgreSQL is not longer in a backup, in bytes with the name of its table.
pub(super) const MAX_ROW: usize = 256 << 20;

pub(in crate::cli) async fn write(
    arguments: &BackupArguments,
    settings: &Settings,
) -> Result<ExitCode, String> {
    let to = std::path::absolute(&arguments.file).map_err(|error| error.to_string())?;
    if to.exists() {
        return Err(format!("there is already {}; choose another name", to.display()));
    }
    if !Stores::are_there(settings) {
        return Err(format!("nothing is stored yet in {}", Stores::place(settings)?));
    }
    let stores = Stores::open(settings).await?;
    let change = Change {
        command: "toolrack backup",
        tenant: registry_core::DEFAULT_TENANT.to_owned(),
        arguments: json!({"file": to, "with_key": arguments.with_key}),
    };
    made_by_operator(&stores, Some(change), write_to(&to, arguments.with_key, settings)).await
}

async fn write_to(to: &Path, with_key: bool, settings: &Settings) -> Result<ExitCode, String> {
    let places = Places::of(settings)?;
    let folder = to.parent().unwrap_or(Path::new("/"));
    let copies = copies_in(folder).map_err(|error| format!("cannot write {}: {error}", to.display()))?;
    let made = make(copies.path(), to, with_key, settings, &places).await?;
    made.file.persist_noclobber(to).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => format!("there is already {}; choose another name", to.display()),
        _ => format!("cannot write {}: {}", to.display(), error.error),
    })?;
    let stored = made.databases + usize::from(places.postgres().is_some());
    tell(format_args!(
        "{} has {} and {} of {}",
        to.display(),
        count(stored, "database"),
        count(made.others, "other file"),
        places.data.display()
    ));
    if made.passed_over > 0 {
        tell(format_args!(
            "passed over: {} that are links, or were deleted meanwhile",
            count(made.passed_over, "file")
        ));
    }
    if !with_key && places.key.exists() {
        tell("the key that signs the audit is not in it; see --with-key");
    }
    Ok(ExitCode::SUCCESS)
}

/// A folder for what a backup is made of, which is deleted with this.
pub(super) fn copies_in(folder: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(MAKING).tempdir_in(folder)
}

/// A backup that is whole.
pub(super) struct Made {
    /// In the folder of the copies.
    pub(super) file: NamedTempFile,
    databases: usize,
    others: usize,
    passed_over: usize,
}

/// Makes a backup in a folder for copies; a file at `to` is left out of it.
pub(super) async fn make(
    copies: &Path,
    to: &Path,
    with_key: bool,
    settings: &Settings,
    places: &Places<'_>,
) -> Result<Made, String> {
    let cannot = |error: io::Error| format!("cannot write into {}: {error}", copies.display());
    let mut writer = Writer::new(copies).map_err(cannot)?;

    // First the plain files: of signed heads none is later than the records that are copied after them.
    let plain = files_of(places, to, copies)?;
    let public_key = audit::public_key_of(settings)?;
    let mut databases = places.sqlite().map_err(|error| error.to_string())?;
    let (mut passed_over, mut others) = (plain.passed_over, 0);
    for (file, path) in plain.files {
        if is_sqlite(&file) {
            databases.push((file, path));
            continue;
        }
        match writer.add(&path, &file) {
            Ok(()) => others += 1,
            // A file that a tool has deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => passed_over += 1,
            Err(error) => return Err(format!("{}: {error}", file.display())),
        }
    }
    for (number, (file, path)) in databases.iter().enumerate() {
        check_room(copies, file, free)?;
        let copy = copies.join(number.to_string());
        copy_sqlite(file, &copy).await?;
        add_and_remove(&mut writer, path, &copy).map_err(cannot)?;
    }
    let mut tables = BTreeMap::new();
    if let Some((url, layouts)) = places.postgres() {
        let mut texts = Texts { folder: copies, open: BTreeMap::new() };
        let mut write = |part: &'static str, table: &str, row: &str| texts.write(part, table, row);
        let versions = dump_tables(url, &layouts, &mut write).await?;
        tables.extend(versions.into_iter().map(|(part, version)| (part.to_owned(), version)));
        for (part, mut text) in texts.open {
            text.flush().map_err(cannot)?;
            add_and_remove(&mut writer, &text_of(part), &copies.join(part)).map_err(cannot)?;
        }
    }
    if with_key && places.key.exists() {
        writer.add(KEY, &places.key).map_err(|error| format!("{}: {error}", places.key.display()))?;
    }
    let server = settings.store.server.clone();
    let manifest = |files| Manifest {
        format: FORMAT,
        toolrack: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: SystemClock.now(),
        server,
        public_key,
        tables,
        files,
    };
    let file = writer.finish(manifest).map_err(cannot)?;
    Ok(Made { file, databases: databases.len(), others, passed_over })
}

/// Refuses a database for whose copy the disk has no room, before it is full: a server that stores there takes nothing then.
fn check_room(copies: &Path, file: &Path, free: impl Fn(&Path) -> Option<u64>) -> Result<(), String> {
    let bytes = file.metadata().map_or(0, |file| file.len());
    match free(copies) {
        Some(room) if room < bytes => Err(format!(
            "there is no room for the backup: {} has {} MiB, and the disk of {} has {} MiB. Nothing was kept of it, and earlier backups are as \
             they were; write it to another disk",
            file.display(),
            bytes.div_ceil(1 << 20),
            copies.parent().unwrap_or(copies).display(),
            room >> 20
        )),
        _ => Ok(()),
    }
}

/// The name of the text with the rows of a part.
pub(super) fn text_of(part: &str) -> String {
    format!("{part}.jsonl")
}

fn add_and_remove(writer: &mut Writer, path: &str, copy: &Path) -> io::Result<()> {
    writer.add(path, copy)?;
    std::fs::remove_file(copy)
}

/// The texts with the rows of the parts, a file each.
struct Texts<'t> {
    folder: &'t Path,
    open: BTreeMap<&'static str, BufWriter<File>>,
}

impl Texts<'_> {
    fn write(&mut self, part: &'static str, table: &str, row: &str) -> io::Result<()> {
        if !self.open.contains_key(part) {
            self.open.insert(part, BufWriter::new(File::create_new(self.folder.join(part))?));
        }
        let Some(text) = self.open.get_mut(part) else { return Ok(()) };
        if table.len() + row.len() + 6 > MAX_ROW {
            return Err(io::Error::other(format!("a row of {table} is longer than a backup can have")));
        }
        writeln!(text, "[\"{table}\",{row}]")
    }
}

/// The files of the data folder, and how many were passed over.
pub(super) struct PlainFiles {
    /// Each with its path in the archive.
    pub(super) files: Vec<(PathBuf, String)>,
    passed_over: usize,
}

pub(super) fn files_of(places: &Places<'_>, to: &Path, copies: &Path) -> Result<PlainFiles, String> {
    let mut found = PlainFiles { files: Vec::new(), passed_over: 0 };
    let mut folders = vec![(places.data.clone(), DATA.to_owned(), 0)];
    while let Some((folder, path, depth)) = folders.pop() {
        let named = |error: io::Error| format!("{}: {error}", folder.display());
        for (entry, name) in entries(&folder).map_err(named)? {
            let Some(name) = name.to_str() else {
                return Err(format!("{}: its name is not UTF-8; rename it", entry.display()));
            };
            if places.is_apart(&entry, name) || entry == to || entry == copies {
                continue;
            }
            // Beside a database that belongs to a tool.
            let of_database =
                ["-wal", "-shm", "-journal"].into_iter().filter_map(|end| name.strip_suffix(end));
            if of_database.into_iter().any(|name| is_sqlite(&folder.join(name))) {
                continue;
            }
            let kind = std::fs::symlink_metadata(&entry).map_err(named)?.file_type();
            let path = format!("{path}/{name}");
            match () {
                () if kind.is_dir() && depth < MAX_DEPTH => folders.push((entry, path, depth + 1)),
                () if kind.is_file() => found.files.push((entry, path)),
                () => found.passed_over += 1,
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b10_a_backup_for_which_the_disk_has_no_room_is_not_begun() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolrack.db");
        std::fs::write(&file, vec![0; 1 << 20]).unwrap();
        for free in [None, Some(1 << 20)] {
            assert_eq!(check_room(folder.path(), &file, |_| free), Ok(()));
        }
        let fault = check_room(folder.path(), &file, |_| Some((1 << 20) - 1)).unwrap_err();
        assert!(
            fault.contains("toolrack.db has 1 MiB") && fault.contains("earlier backups are as"),
            "{fault}"
        );
    }
}
