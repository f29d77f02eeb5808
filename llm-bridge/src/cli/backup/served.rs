//! The backups of a server, which its operator asks for.

use std::{fs, io, path::Path, sync::Arc};

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::{
    archive::free,
    place::{Places, remove_left},
    write::{copies_in, files_of, make},
};
use crate::{
    cli::{postgres::size_of_tables, settings::Settings},
    server::{BackupFault, BackupFile, MakeBackup},
};

/// How many times the data must fit on the disk besides: as a copy of its largest part, and as the backup.
const ROOM: u64 = 2;

/// Makes backups of what these settings name.
pub(in crate::cli) struct ServedBackup(Arc<Settings>);

impl ServedBackup {
    pub(in crate::cli) fn new(settings: Settings) -> Self {
        Self(Arc::new(settings))
    }
}

#[async_trait]
impl MakeBackup for ServedBackup {
    async fn make(&self) -> Result<BackupFile, BackupFault> {
        let settings = Arc::clone(&self.0);
        // It reads, compresses and writes all along.
        let runtime = Handle::current();
        let made = tokio::task::spawn_blocking(move || runtime.block_on(in_data_folder(&settings))).await;
        made.unwrap_or_else(|fault| Err(BackupFault::Failed(fault.to_string())))
    }
}

async fn in_data_folder(settings: &Settings) -> Result<BackupFile, BackupFault> {
    let places = Places::of(settings).map_err(BackupFault::Failed)?;
    let folder = places.data.as_path();
    let failed = |error: io::Error| BackupFault::Failed(format!("{}: {error}", folder.display()));
    remove_left(folder).map_err(failed)?;
    let bytes = bytes_of(&places).await.map_err(BackupFault::Failed)?;
    fits(bytes, free(folder))?;
    let copies = copies_in(folder).map_err(failed)?;
    let made = make(copies.path(), copies.path(), false, settings, &places).await;
    let (file, path) = made.map_err(BackupFault::Failed)?.file.into_parts();
    let mut file = file;
    io::Seek::rewind(&mut file).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    Ok(BackupFile { file, bytes, place: Box::new((path, copies)) })
}

/// Refuses to make a backup of so much where so little is free.
fn fits(bytes: u64, free: Option<u64>) -> Result<(), BackupFault> {
    match free.filter(|free| free / ROOM < bytes) {
        None => Ok(()),
        Some(free) => Err(BackupFault::NoRoom(format!(
            "the data has {} MiB, and its disk has {} MiB left; a backup is made where {ROOM} times the data is free, or with \
             `toolrack backup` on another disk",
            bytes >> 20,
            free >> 20
        ))),
    }
}

/// How much is to be copied, in bytes.
async fn bytes_of(places: &Places<'_>) -> Result<u64, String> {
    let plain = files_of(places, Path::new(""), Path::new(""))?.files;
    let databases = places.sqlite().map_err(|error| error.to_string())?;
    let size = |file: &Path| fs::metadata(file).map_or(0, |data| data.len());
    let files: u64 = plain.iter().chain(&databases).map(|(file, _)| size(file)).sum();
    match places.postgres() {
        Some((url, layouts)) => {
            Ok(files + size_of_tables(url, &layouts).await.map_err(|error| error.to_string())?)
        }
        None => Ok(files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_a_backup_needs_twice_the_room_of_the_data() {
        assert_eq!(fits(100 << 20, Some(200 << 20)), Ok(()));
        assert_eq!(fits(100 << 20, None), Ok(()), "a disk that does not tell");
        let Err(BackupFault::NoRoom(why)) = fits(100 << 20, Some((200 << 20) - 2)) else { panic!("it fits") };
        assert!(why.contains("100 MiB") && why.contains("199 MiB"), "{why}");
    }
}
