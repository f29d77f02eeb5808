//! Where what is in a backup comes from, and goes to.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::cli::{
    postgres::{self, Layout},
    settings::{Place, Settings},
    store::Stores,
};

/// The names of the parts in an archive.
pub(super) const STORE: &str = "store";
pub(super) const DOCUMENTS: &str = "documents";
/// The folder of the files of the data folder.
pub(super) const DATA: &str = "data";
/// The signing key, if it is in the backup.
pub(super) const KEY: &str = "audit-key.pem";

/// What names of our own in the data folder begin with: none is ever in a backup.
pub(super) const ASIDE: &str = "before-restore-";
pub(super) const STAGING: &str = ".restoring-";
pub(super) const MAKING: &str = ".backup-";
pub(super) const UPLOADED: &str = ".restore-";
pub(super) const UPLOAD: &str = ".restore-upload-";

/// What a program that was killed has left is removed after this time.
const LEFT: Duration = Duration::from_secs(24 * 3600);

/// Whether a name in the data folder is one of those.
pub(super) fn is_ours(name: &str) -> bool {
    [ASIDE, STAGING, MAKING, UPLOADED].iter().any(|begins| name.starts_with(begins))
}

/// Where the data is that a configuration names.
pub(super) struct Places<'s> {
    pub(super) data: PathBuf,
    pub(super) store: Place<'s>,
    pub(super) documents: Place<'s>,
    pub(super) key: PathBuf,
    /// What opens the accounts in the store, and so lies in no backup beside them.
    sealing_key: PathBuf,
}

impl<'s> Places<'s> {
    pub(super) fn of(settings: &'s Settings) -> Result<Self, String> {
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
        let absolute_place = |place| match place {
            Place::File(file) => absolute(&file).map(Place::File),
            other => Ok(other),
        };
        Ok(Self {
            data: absolute(&settings.data_dir)?,
            store: absolute_place(Stores::place_of(settings)?)?,
            documents: absolute_place(settings.document_place())?,
            key: absolute(&settings.audit.key_file(&settings.data_dir))?,
            sealing_key: absolute(&settings.connections.key_file(&settings.data_dir))?,
        })
    }

    /// Whether a file is a key of this server, which stays where it is.
    pub(super) fn is_key(&self, path: &Path) -> bool {
        path == self.key || path == self.sealing_key
    }

    /// The database of a part.
    pub(super) fn database(&self, part: &str) -> &Place<'s> {
        if part == STORE { &self.store } else { &self.documents }
    }

    /// The URL of PostgreSQL and its tables, if anything is kept there.
    pub(super) fn postgres(&self) -> Option<(&'s str, Vec<Layout>)> {
        let parts = [(&self.store, Some(Layout::STORE)), (&self.documents, postgres::DOCUMENTS)];
        let of_postgres = |(place, layout): (&Place<'s>, Option<Layout>)| match place {
            Place::Postgres(url) => Some((*url, layout?)),
            Place::File(_) => None,
        };
        let found: Vec<_> = parts.into_iter().filter_map(of_postgres).collect();
        let url = found.first()?.0;
        Some((url, found.into_iter().map(|(_, layout)| layout).collect()))
    }

    /// The SQLite files that are there, each with its name in an archive: of documents, those of other tenants too.
    pub(super) fn sqlite(&self) -> io::Result<Vec<(PathBuf, String)>> {
        let mut files = Vec::new();
        for (part, place) in [(STORE, &self.store), (DOCUMENTS, &self.documents)] {
            let Place::File(file) = place else { continue };
            if file.exists() {
                files.push((file.clone(), format!("{part}.db")));
            }
            if part == DOCUMENTS {
                for (tenant, name) in entries(&tenants_of(file))? {
                    if tenant.extension() == file.extension() {
                        files.push((tenant, format!("{part}.tenants/{}", name.to_string_lossy())));
                    }
                }
            }
        }
        Ok(files)
    }

    /// Whether a path in the data folder is not one of its plain files: a database, which is copied by itself, what belongs to one, a
    /// key, or ours.
    pub(super) fn is_apart(&self, path: &Path, name: &str) -> bool {
        let of_database = [&self.store, &self.documents].into_iter().any(|place| match place {
            Place::File(file) => {
                let beside = |suffix: &str| {
                    let mut name = file.as_os_str().to_owned();
                    name.push(suffix);
                    path == Path::new(&name)
                };
                ["", "-wal", "-shm", "-journal"].into_iter().any(beside)
            }
            Place::Postgres(_) => false,
        });
        let of_tenants = matches!(&self.documents, Place::File(file) if path == tenants_of(file));
        of_database || of_tenants || self.is_key(path) || is_ours(name)
    }
}

/// The folder with the documents of the other tenants, beside the file of the default one.
pub(super) fn tenants_of(file: &Path) -> PathBuf {
    file.with_extension("tenants")
}

/// What is in a folder, by name; nothing where there is no folder.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<(PathBuf, OsString)>> {
    let read = match fs::read_dir(folder) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let entry = |entry: io::Result<fs::DirEntry>| entry.map(|entry| (entry.path(), entry.file_name()));
    let mut found = read.map(entry).collect::<Result<Vec<_>, _>>()?;
    found.sort();
    Ok(found)
}

/// Removes what programs have left that were killed while they made a backup, took one in or checked it.
pub(super) fn remove_left(folder: &Path) -> io::Result<()> {
    for (path, name) in entries(folder)? {
        let name = name.to_string_lossy();
        let is_left = |changed: SystemTime| changed.elapsed().is_ok_and(|age| age > LEFT);
        let is_for_a_while = [MAKING, STAGING, UPLOAD].iter().any(|begins| name.starts_with(begins));
        if is_for_a_while && fs::metadata(&path)?.modified().is_ok_and(is_left) {
            if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_what_a_killed_server_has_left_is_removed_after_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - LEFT - Duration::from_secs(60);
        let mut left = Vec::new();
        for begins in [MAKING, STAGING, UPLOAD] {
            left.extend([(format!("{begins}old"), true), (format!("{begins}new"), false)]);
        }
        left.extend([(format!("{UPLOADED}next.tar.gz"), false), ("files".to_owned(), false)]);
        for (name, _) in &left {
            let path = folder.path().join(name);
            if name.starts_with(UPLOADED) {
                fs::write(&path, "").unwrap()
            } else {
                fs::create_dir(&path).unwrap()
            }
            if !name.ends_with("new") {
                fs::File::open(&path).unwrap().set_modified(old).unwrap();
            }
        }
        remove_left(folder.path()).unwrap();
        for (name, is_removed) in left {
            assert_eq!(!folder.path().join(&name).exists(), is_removed, "{name}");
        }
    }
}
