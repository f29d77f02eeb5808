//! Puts the data of a backup in place.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use registry_core::{
    clock::{Clock, SystemClock},
    private::private_folder,
    store::StoreErrorKind,
};
use serde_json::{Value, json, value::RawValue};
use tempfile::TempDir;
use toolrack_stores::{
    SqliteSettings,
    backup::{LockedSqlite, lock_sqlite},
};

use super::{
    RestoreArguments,
    archive::{MAX_MANIFEST, Manifest, free, unpack},
    moves::put_in_place,
    place::{ASIDE, DATA, DOCUMENTS, KEY, Places, STAGING, STORE, entries, is_ours, tenants_of},
    uploaded,
    write::{MAX_ROW, text_of},
};
use crate::{
    cli::{
        audit, made_by_operator,
        out::{second, tell},
        postgres::load_tables,
        settings::{Place, Settings, migrate_documents},
        store::Stores,
    },
    recorded::Change,
};

/// The signed heads in the data folder, and those before them.
const HEADS: &str = "audit-heads.jsonl";
const HEADS_BEFORE: &str = "audit-heads.jsonl.1";
/// Signed heads of a server whose key is not here.
const OLD_HEADS: &str = "restored-heads.jsonl";

pub(in crate::cli) async fn restore(
    arguments: &RestoreArguments,
    settings: &Settings,
) -> Result<ExitCode, String> {
    let places = Places::of(settings)?;
    let there = what_is_there(&places).map_err(|error| format!("{}: {error}", places.data.display()))?;
    if let (Some(there), false) = (&there, arguments.replace) {
        return Err(format!(
            "there is data already: {}. With --replace it is moved aside, and the backup takes its place",
            there.display()
        ));
    }
    let restored = put(&arguments.file, settings, &places, arguments.replace).await?;
    restored.notes.iter().for_each(tell);
    // It would take the place of this one at the next start.
    if uploaded::discard(&places).await.map_err(|error| error.to_string())? {
        tell("the backup that was uploaded for the next start is discarded");
    }
    restored.record(settings, json!({"file": arguments.file})).await?;
    tell(format_args!("restored {}, {}", arguments.file.display(), restored.what()));
    Ok(ExitCode::SUCCESS)
}

/// A backup that is in place.
pub(super) struct Restored {
    manifest: Manifest,
    /// What the operator should know of it.
    pub(super) notes: Vec<String>,
}

impl Restored {
    /// What it is, for messages.
    pub(super) fn what(&self) -> String {
        let Manifest { made_at, toolrack, .. } = &self.manifest;
        format!("which was made on {} by toolrack {toolrack}", second(*made_at))
    }

    /// Records in the restored store where it comes from.
    pub(super) async fn record(&self, settings: &Settings, mut from: Value) -> Result<(), String> {
        if let Value::Object(from) = &mut from {
            let Manifest { made_at, server, .. } = &self.manifest;
            from.extend([("made_at".to_owned(), json!(made_at)), ("by".to_owned(), json!(server))]);
        }
        let tenant = registry_core::DEFAULT_TENANT.to_owned();
        let change = Change { command: "toolrack restore", tenant, arguments: from };
        made_by_operator(&Stores::open(settings).await?, Some(change), async { Ok(()) }).await
    }
}

/// Why a backup is not in place.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRestored {
    /// The database is used by others, or away; nothing is wrong with the backup.
    #[error("{0}")]
    NotNow(String),
    #[error("{0}")]
    Failed(String),
}

impl From<String> for NotRestored {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<NotRestored> for String {
    fn from(fault: NotRestored) -> Self {
        fault.to_string()
    }
}

/// Puts a backup in place of what is there. What fails before that has changed nothing.
pub(super) async fn put(
    file: &Path,
    settings: &Settings,
    places: &Places<'_>,
    replace: bool,
) -> Result<Restored, NotRestored> {
    let mut locks = not_in_use(places).await?;
    let made_folder = !places.data.exists();
    let restored = staged(file, settings, places, replace, &mut locks).await;
    for lock in locks {
        lock.release().await;
    }
    if restored.is_err() && made_folder {
        // Only if it is empty.
        let _ = fs::remove_dir(&places.data);
    }
    restored
}

/// Unpacks a backup beside the data, checks it whole and brings it to this version.
pub(super) async fn unpacked(
    file: &Path,
    settings: &Settings,
    places: &Places<'_>,
) -> Result<(TempDir, Manifest), String> {
    let cannot = |error: io::Error| cannot_write(places, &error);
    private_folder(&places.data).map_err(cannot)?;
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(&places.data).map_err(cannot)?;
    let (file, folder) = (file.to_owned(), staging.path().to_owned());
    let manifest = tokio::task::spawn_blocking(move || unpack(&file, &folder, MAX_MANIFEST, free)).await;
    let manifest = manifest.map_err(|error| error.to_string())??;
    fits(&manifest, places)?;
    migrate(staging.path(), settings).await?;
    Ok((staging, manifest))
}

fn cannot_write(places: &Places<'_>, error: &io::Error) -> String {
    format!("cannot write into {}: {error}", places.data.display())
}

/// Makes all ready beside the data, and then puts it in place.
async fn staged(
    file: &Path,
    settings: &Settings,
    places: &Places<'_>,
    replace: bool,
    locks: &mut Vec<LockedSqlite>,
) -> Result<Restored, NotRestored> {
    let cannot = |error: io::Error| cannot_write(places, &error);
    let (staging, manifest) = unpacked(file, settings, places).await?;
    let key_comes = staging.path().join(KEY).exists();
    let has_key = key_comes || audit::public_key_of(settings)? == manifest.public_key;
    if !has_key {
        for (of, old) in [(HEADS, OLD_HEADS.to_owned()), (HEADS_BEFORE, format!("{OLD_HEADS}.1"))] {
            let file = staging.path().join(DATA).join(of);
            if file.exists() {
                fs::rename(&file, file.with_file_name(old)).map_err(cannot)?;
            }
        }
    }
    // Last what can still fail for many reasons.
    load(&manifest, staging.path(), places, replace).await?;
    let aside = places.data.join(format!("{ASIDE}{}", SystemClock.now().strftime("%Y%m%dT%H%M%SZ")));
    for lock in locks.drain(..) {
        lock.release().await;
    }
    let mut notes = Vec::new();
    if put_in_place(staging.path(), &aside, places).map_err(cannot)? {
        let aside = aside.display();
        notes.push(format!("what was there before is in {aside}; remove it when nobody misses it"));
    }
    let old = places.data.join(OLD_HEADS);
    // Before the first head is signed there are none.
    if let (false, Some(key), true) = (has_key, &manifest.public_key, old.is_file()) {
        notes.push(format!(
            "the key that signs the audit is not in the backup, so the next server makes one; verify what was signed before with \
             `toolrack audit verify --heads {} --public-key {key}`",
            old.display()
        ));
    }
    Ok(Restored { manifest, notes })
}

/// Locks the databases against everybody else.
async fn not_in_use(places: &Places<'_>) -> Result<Vec<LockedSqlite>, NotRestored> {
    let mut locks = Vec::new();
    for (file, _) in places.sqlite().map_err(|error| error.to_string())? {
        // One that is no database any more can only be replaced.
        if toolrack_stores::backup::is_sqlite(&file) {
            let lock = lock_sqlite(&file).await.map_err(String::from)?;
            let used = || NotRestored::NotNow(format!("a server uses {}; stop it first", file.display()));
            locks.push(lock.ok_or_else(used)?);
        }
    }
    Ok(locks)
}

/// Something that would be replaced.
fn what_is_there(places: &Places<'_>) -> io::Result<Option<PathBuf>> {
    if let Some((file, _)) = places.sqlite()?.into_iter().next() {
        return Ok(Some(file));
    }
    let of_data = entries(&places.data)?.into_iter();
    // A key is kept, for the server to go on signing with.
    let others = of_data.filter(|(path, name)| !places.is_key(path) && !name.to_str().is_some_and(is_ours));
    Ok(others.map(|(path, _)| path).next())
}

/// Whether each part goes into a database of the kind that it comes from.
fn fits(manifest: &Manifest, places: &Places<'_>) -> Result<(), String> {
    for part in [STORE, DOCUMENTS] {
        let in_file = manifest.files.contains_key(&format!("{part}.db"));
        let in_tables = manifest.tables.contains_key(part);
        let (of, into) = match places.database(part) {
            Place::File(_) if in_tables => ("PostgreSQL", "a file of SQLite"),
            Place::Postgres(_) if in_file => ("a file of SQLite", "PostgreSQL"),
            _ => continue,
        };
        let setting = if part == STORE { "store.url" } else { "documents.file" };
        return Err(format!(
            "the {part} of the backup is from {of}, and the configuration names {into}; set `{setting}` to the same kind"
        ));
    }
    if !manifest.files.contains_key(&format!("{STORE}.db")) && !manifest.tables.contains_key(STORE) {
        return Err("the backup has no store".to_owned());
    }
    Ok(())
}

/// Brings databases of an older version to this one, and refuses those of a newer one.
async fn migrate(staging: &Path, settings: &Settings) -> Result<(), String> {
    let store = staging.join(format!("{STORE}.db"));
    if store.exists() {
        let server = settings.store.server.clone();
        drop(SqliteSettings { server, ..SqliteSettings::new(&store) }.open().await?);
        close(&store).await?;
    }
    let documents = staging.join(format!("{DOCUMENTS}.db"));
    let tenants = entries(&tenants_of(&documents)).map_err(|error| error.to_string())?;
    for file in [documents].into_iter().chain(tenants.into_iter().map(|(file, _)| file)) {
        if file.exists() {
            migrate_documents(&file).await?;
            close(&file).await?;
        }
    }
    Ok(())
}

/// Waits until nobody has a database open, so that all of it is in its one file.
async fn close(file: &Path) -> Result<(), String> {
    for _ in 0..200 {
        if let Some(lock) = lock_sqlite(file).await? {
            lock.release().await;
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    Err(format!("{} stays open", file.display()))
}

/// Puts the rows of PostgreSQL into its tables.
async fn load(
    manifest: &Manifest,
    staging: &Path,
    places: &Places<'_>,
    replace: bool,
) -> Result<(), NotRestored> {
    let Some((url, layouts)) = places.postgres() else { return Ok(()) };
    let versions: &BTreeMap<String, usize> = &manifest.tables;
    let layouts: Vec<_> =
        layouts.into_iter().filter_map(|layout| Some((layout, *versions.get(layout.name)?))).collect();
    let mut texts = Vec::new();
    for (layout, _) in &layouts {
        let text = staging.join(text_of(layout.name));
        if text.exists() {
            texts.push(BufReader::new(File::open(&text).map_err(|error| error.to_string())?));
        }
    }
    let mut texts = texts.into_iter().peekable();
    let mut next = || -> io::Result<Option<(String, Box<RawValue>)>> {
        while let Some(text) = texts.peek_mut() {
            if let Some(row) = row_of(text, MAX_ROW)? {
                return Ok(Some(serde_json::from_str(&row)?));
            }
            texts.next();
        }
        Ok(None)
    };
    load_tables(url, &layouts, replace, &mut next).await.map_err(|error| match error.kind() {
        StoreErrorKind::Conflict if !replace => NotRestored::Failed(format!("{error}; see --replace")),
        StoreErrorKind::Conflict | StoreErrorKind::Unavailable => NotRestored::NotNow(error.to_string()),
        _ => NotRestored::Failed(error.to_string()),
    })?;
    for (layout, _) in layouts {
        // Not into the data folder.
        let _ = fs::remove_file(staging.join(text_of(layout.name)));
    }
    Ok(())
}

/// The next line of a text, which has no more than so many bytes.
fn row_of(text: &mut impl BufRead, max: usize) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = text.take(u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1)).read_line(&mut line)?;
    if read > max {
        return Err(io::Error::other("a row is longer than a backup can have"));
    }
    Ok((read > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_a_row_of_a_backup_has_so_many_bytes_and_no_more() {
        let mut text = &b"[1]\n[2,3]\n"[..];
        let mut next = |max| row_of(&mut text, max).map_err(|error| error.to_string());
        assert_eq!(next(6), Ok(Some("[1]\n".to_owned())));
        assert_eq!(next(6), Ok(Some("[2,3]\n".to_owned())));
        assert_eq!(next(6), Ok(None));
        let endless = row_of(&mut BufReader::new(io::repeat(b'1')), 1000).unwrap_err();
        assert!(endless.to_string().contains("longer than a backup can have"), "{endless}");
    }
}
