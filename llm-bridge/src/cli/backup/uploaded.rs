//! A backup that an operator uploads to the running server. It waits in the data folder, and the next start puts it in place before anything
//! opens the stores.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use axum::body::BodyDataStream;
use futures_util::StreamExt;
use registry_core::{
    clock::{Clock, SystemClock},
    private::private_folder,
};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::{io::AsyncWriteExt, runtime::Handle};

use super::{
    archive::{Manifest, RESERVED, free},
    place::{DATA, DOCUMENTS, KEY, Places, STORE, UPLOAD, UPLOADED, remove_left},
    restore::{NotRestored, put, unpacked},
};
use crate::{
    cli::settings::Settings,
    server::{UploadBackup, UploadFault, UploadedBackup},
};

/// What is put in place at the next start, and what could not be.
const NEXT: &str = "next";
const FAILED: &str = "failed";

/// Takes uploaded backups for what these settings name.
pub(in crate::cli) struct ServedRestore(Arc<Settings>);

impl ServedRestore {
    pub(in crate::cli) fn new(settings: Settings) -> Self {
        Self(Arc::new(settings))
    }

    fn data(&self) -> Result<PathBuf, UploadFault> {
        Ok(Places::of(&self.0)?.data)
    }
}

#[async_trait]
impl UploadBackup for ServedRestore {
    async fn upload(&self, by: String, body: BodyDataStream) -> Result<UploadedBackup, UploadFault> {
        let data = self.data()?;
        if archive(&data, NEXT).exists() {
            return Err(UploadFault::Waits);
        }
        private_folder(&data)?;
        remove_left(&data)?;
        let upload = received(body, &data, free).await?;
        let (settings, runtime) = (Arc::clone(&self.0), Handle::current());
        let kept = tokio::task::spawn_blocking(move || runtime.block_on(checked(upload, by, &settings)));
        kept.await.unwrap_or_else(|fault| Err(UploadFault::Failed(fault.to_string())))
    }

    fn uploaded(&self) -> Result<Option<UploadedBackup>, UploadFault> {
        let data = self.data()?;
        let Some(name) = [NEXT, FAILED].into_iter().find(|name| archive(&data, name).exists()) else {
            return Ok(None);
        };
        Ok(Some(UploadedBackup { waits: name == NEXT, ..about(&data, name)? }))
    }

    async fn delete_uploaded(&self) -> Result<(), UploadFault> {
        let data = self.data()?;
        for name in [NEXT, FAILED] {
            remove(&data, name).await?;
        }
        Ok(())
    }
}

fn archive(data: &Path, name: &str) -> PathBuf {
    data.join(format!("{UPLOADED}{name}.tar.gz"))
}

/// What is known of an archive, beside it.
fn about_file(data: &Path, name: &str) -> PathBuf {
    data.join(format!("{UPLOADED}{name}.json"))
}

fn about(data: &Path, name: &str) -> io::Result<UploadedBackup> {
    Ok(serde_json::from_slice(&fs::read(about_file(data, name))?)?)
}

fn write_about(data: &Path, name: &str, about: &UploadedBackup) -> io::Result<()> {
    let mut file = NamedTempFile::with_prefix_in(UPLOAD, data)?;
    serde_json::to_writer(&mut file, about)?;
    file.as_file().sync_all()?;
    file.persist(about_file(data, name))?;
    Ok(())
}

/// Whether there was one.
async fn remove(data: &Path, name: &str) -> io::Result<bool> {
    match tokio::fs::remove_file(archive(data, name)).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    }
    tokio::fs::remove_file(about_file(data, name)).await?;
    Ok(true)
}

/// Discards what waits for the next start. Whether anything did.
pub(super) async fn discard(places: &Places<'_>) -> io::Result<bool> {
    remove(&places.data, NEXT).await
}

/// Takes in what is sent, as far as the disk has room. It is deleted with what this gives.
async fn received(
    mut body: BodyDataStream,
    data: &Path,
    free: impl Fn(&Path) -> Option<u64>,
) -> Result<NamedTempFile, UploadFault> {
    let upload = NamedTempFile::with_prefix_in(UPLOAD, data)?;
    let mut file = tokio::fs::File::from_std(upload.as_file().try_clone()?);
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|fault| UploadFault::NotWhole(fault.to_string()))?;
        let needed = RESERVED.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if free(data).is_some_and(|free| free < needed) {
            return Err(UploadFault::NoRoom(format!(
                "the disk of {} has no room for it beside the {} MiB that stay free",
                data.display(),
                RESERVED >> 20
            )));
        }
        file.write_all(&piece).await?;
    }
    file.flush().await?;
    file.sync_all().await?;
    Ok(upload)
}

/// Unpacks what was taken in, beside the data, and lets it wait if it is a backup that can be put in place here.
async fn checked(
    upload: NamedTempFile,
    by: String,
    settings: &Settings,
) -> Result<UploadedBackup, UploadFault> {
    let places = Places::of(settings)?;
    let unpacked = unpacked(upload.path(), settings, &places).await;
    let (staging, manifest) =
        unpacked.map_err(|why| UploadFault::Refused(without_name(why, upload.path())))?;
    staging.close()?;
    let bytes = upload.as_file().metadata()?.len();
    let parts = parts_of(&manifest);
    let Manifest { toolrack, made_at, server, .. } = manifest;
    let at = SystemClock.now();
    let uploaded =
        UploadedBackup { waits: true, made_at, toolrack, server, parts, bytes, by, at, error: None };
    write_about(&places.data, NEXT, &uploaded)?;
    upload.persist_noclobber(archive(&places.data, NEXT)).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => UploadFault::Waits,
        _ => error.error.into(),
    })?;
    remove(&places.data, FAILED).await?;
    Ok(uploaded)
}

/// Why a backup is refused, without the name under which it lies here, which nobody knows.
fn without_name(why: String, file: &Path) -> String {
    let begin = format!("{}: ", file.display());
    why.strip_prefix(&begin).map(str::to_owned).unwrap_or(why)
}

/// What is in a backup, in a few words.
fn parts_of(manifest: &Manifest) -> Vec<String> {
    let has = |part: &str| {
        let begins = |name: &String| {
            name == part || name.starts_with(&format!("{part}.")) || name.starts_with(&format!("{part}/"))
        };
        manifest.tables.contains_key(part) || manifest.files.keys().any(begins)
    };
    let parts = [(STORE, "store"), (DOCUMENTS, "documents"), (DATA, "files"), (KEY, "audit-key")];
    parts.into_iter().filter(|(part, _)| has(part)).map(|(_, name)| name.to_owned()).collect()
}

/// Puts in place what was uploaded, as `toolrack restore --replace` does. Where that cannot be, the data stays as it is.
pub(in crate::cli) async fn put_uploaded(settings: &Settings) {
    let put = async {
        let places = Places::of(settings)?;
        remove_left(&places.data).map_err(|error| error.to_string())?;
        match archive(&places.data, NEXT).exists() {
            true => put_next(settings, &places).await,
            false => Ok(()),
        }
    };
    if let Err(cause) = put.await {
        tracing::error!(cause, "backup_not_restored");
    }
}

async fn put_next(settings: &Settings, places: &Places<'_>) -> Result<(), String> {
    let (data, file) = (places.data.as_path(), archive(&places.data, NEXT));
    let described = |error: io::Error| format!("{}: {error}", file.display());
    let about = about(data, NEXT).map_err(described)?;
    let restored = match put(&file, settings, places, true).await {
        Ok(restored) => restored,
        Err(fault) => {
            let why = without_name(fault.to_string(), &file);
            let failed = UploadedBackup { error: Some(why.clone()), ..about };
            if let NotRestored::NotNow(_) = fault {
                write_about(data, NEXT, &failed).map_err(described)?;
                return Err(format!("{why}. The backup that was uploaded waits for the next start"));
            }
            write_about(data, FAILED, &failed).map_err(described)?;
            fs::rename(&file, archive(data, FAILED)).map_err(described)?;
            fs::remove_file(about_file(data, NEXT)).map_err(described)?;
            let kept = archive(data, FAILED);
            return Err(format!(
                "{why}. The server starts with the data that is there; the backup is kept as {}",
                kept.display()
            ));
        }
    };
    tracing::info!("Restored the backup that {} uploaded, {}", about.by, restored.what());
    restored.notes.iter().for_each(|note| tracing::info!("{note}"));
    if let Err(cause) = restored.record(settings, json!({"uploaded_by": about.by})).await {
        tracing::error!(cause, "restore_not_audited");
    }
    // Last: if the program is killed before, the next start does the same again.
    remove(data, NEXT).await.map(drop).map_err(described)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[tokio::test]
    async fn u29_what_is_uploaded_leaves_room_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let take = async |free: Option<u64>| {
            let body = Body::from(vec![b'b'; 1000]).into_data_stream();
            received(body, folder.path(), |_| free)
                .await
                .map(|upload| upload.as_file().metadata().unwrap().len())
        };
        assert_eq!(take(None).await.unwrap(), 1000, "a disk that does not tell");
        assert_eq!(take(Some(RESERVED + 1000)).await.unwrap(), 1000);
        let refused = take(Some(RESERVED + 999)).await.unwrap_err();
        assert!(matches!(&refused, UploadFault::NoRoom(why) if why.contains("256 MiB")), "{refused}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "all are gone");
    }

    #[tokio::test]
    async fn u29_what_is_cut_off_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = [Ok("half of it"), Err(io::Error::other("gone"))];
        let body = Body::from_stream(futures_util::stream::iter(pieces)).into_data_stream();
        let refused = received(body, folder.path(), |_| None).await.unwrap_err();
        assert!(matches!(&refused, UploadFault::NotWhole(why) if why.contains("gone")), "{refused}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
