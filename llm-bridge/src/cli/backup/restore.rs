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
};
use serde_json::{json, value::RawValue};
use toolrack_stores::{
    SqliteSettings,
    backup::{LockedSqlite, lock_sqlite},
};

use super::{
    RestoreArguments,
    archive::{MAX_MANIFEST, Manifest, free, unpack},
    place::{ASIDE, DATA, DOCUMENTS, KEY, Places, STAGING, STORE, entries, tenants_of},
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
    let mut locks = not_in_use(&places).await?;
    let made_folder = !places.data.exists();
    let restored = staged(arguments, settings, &places, &mut locks).await;
    for lock in locks {
        lock.release().await;
    }
    if restored.is_err() && made_folder {
        // Only if it is empty.
        let _ = fs::remove_dir(&places.data);
    }
    let manifest = restored?;
    let stores = Stores::open(settings).await?;
    let change = Change {
        command: "toolrack restore",
        tenant: registry_core::DEFAULT_TENANT.to_owned(),
        arguments: json!({"file": arguments.file, "made_at": manifest.made_at, "by": manifest.server}),
    };
    made_by_operator(&stores, Some(change), async { Ok(()) }).await?;
    tell(format_args!(
        "restored {}, which was made on {} by toolrack {}",
        arguments.file.display(),
        second(manifest.made_at),
        manifest.toolrack
    ));
    Ok(ExitCode::SUCCESS)
}

/// Unpacks, checks and migrates the backup beside the data, and then puts it in place. What fails before that has changed nothing.
async fn staged(
    arguments: &RestoreArguments,
    settings: &Settings,
    places: &Places<'_>,
    locks: &mut Vec<LockedSqlite>,
) -> Result<Manifest, String> {
    let cannot = |error: io::Error| format!("cannot write into {}: {error}", places.data.display());
    private_folder(&places.data).map_err(cannot)?;
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(&places.data).map_err(cannot)?;
    let (file, folder) = (arguments.file.clone(), staging.path().to_owned());
    let manifest = tokio::task::spawn_blocking(move || unpack(&file, &folder, MAX_MANIFEST, free)).await;
    let manifest = manifest.map_err(|error| error.to_string())??;
    fits(&manifest, places)?;
    migrate(staging.path(), settings).await?;
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
    load(&manifest, staging.path(), places, arguments.replace).await?;
    let aside = places.data.join(format!("{ASIDE}{}", SystemClock.now().strftime("%Y%m%dT%H%M%SZ")));
    for lock in locks.drain(..) {
        lock.release().await;
    }
    let moved = put_in_place(staging.path(), &aside, places).map_err(cannot)?;
    if moved {
        tell(format_args!(
            "what was there before is in {}; remove it when nobody misses it",
            aside.display()
        ));
    }
    let old = places.data.join(OLD_HEADS);
    // Before the first head is signed there are none.
    if let (false, Some(key), true) = (has_key, &manifest.public_key, old.is_file()) {
        tell(format_args!(
            "the key that signs the audit is not in the backup, so the next server makes one; verify what was signed before with \
             `toolrack audit verify --heads {} --public-key {key}`",
            old.display()
        ));
    }
    Ok(manifest)
}

/// Locks the databases against everybody else.
async fn not_in_use(places: &Places<'_>) -> Result<Vec<LockedSqlite>, String> {
    let mut locks = Vec::new();
    for (file, _) in places.sqlite().map_err(|error| error.to_string())? {
        // One that is no database any more can only be replaced.
        if toolrack_stores::backup::is_sqlite(&file) {
            let lock = lock_sqlite(&file).await?;
            locks.push(lock.ok_or_else(|| format!("a server uses {}; stop it first", file.display()))?);
        }
    }
    Ok(locks)
}

/// Something that would be replaced.
fn what_is_there(places: &Places<'_>) -> io::Result<Option<PathBuf>> {
    if let Some((file, _)) = places.sqlite()?.into_iter().next() {
        return Ok(Some(file));
    }
    let ours = |name: &str| name.starts_with(ASIDE) || name.starts_with(STAGING);
    let of_data = entries(&places.data)?.into_iter();
    // A key is kept, for the server to go on signing with.
    let others = of_data.filter(|(path, name)| !places.is_key(path) && !name.to_str().is_some_and(ours));
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
async fn load(manifest: &Manifest, staging: &Path, places: &Places<'_>, replace: bool) -> Result<(), String> {
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
        registry_core::store::StoreErrorKind::Conflict if !replace => format!("{error}; see --replace"),
        _ => error.to_string(),
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

/// Moves what is there aside, and what was unpacked to its place. Whether anything was there.
fn put_in_place(staging: &Path, aside: &Path, places: &Places<'_>) -> io::Result<bool> {
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
    let ours = |name: &str| name.starts_with(ASIDE) || name.starts_with(STAGING);
    let there = entries(&places.data)?.into_iter();
    let there = there.filter(|(path, name)| !places.is_key(path) && !name.to_str().is_some_and(ours));
    let mut old: Vec<PathBuf> = there.map(|(path, _)| path).collect();
    old.extend(
        moves.iter().map(|(_, to)| to.clone()).filter(|to| to.exists() && !to.starts_with(&places.data)),
    );
    // A key stays, unless the backup has another.
    let keys = moves.iter().filter(|(from, to)| places.is_key(to) && from.exists() && to.exists());
    old.extend(keys.map(|(_, to)| to.clone()));
    for path in &old {
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
            fs::rename(path, to)?;
        }
    }
    for (from, to) in moves {
        if !from.exists() {
            continue;
        }
        if let Some(folder) = to.parent() {
            private_folder(folder)?;
        }
        match fs::rename(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices && from.is_file() => {
                fs::copy(&from, &to)?;
            }
            other => other?,
        }
    }
    Ok(!old.is_empty())
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
