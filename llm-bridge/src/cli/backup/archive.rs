//! The file of a backup: a tar archive, compressed by gzip, whose last member is a manifest with the hash of each of the others.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Component, Path},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use jiff::Timestamp;
use registry_core::private::{private_file, private_folder};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, Header};
use tempfile::NamedTempFile;

/// The version of the format.
pub(super) const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
/// A manifest is not longer than this, in bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// What is in a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// The version of the program that has made it.
    pub(super) toolrack: String,
    pub(super) made_at: Timestamp,
    /// The name of the server in the audit.
    pub(super) server: String,
    /// The public key of the server, if it had one.
    pub(super) public_key: Option<String>,
    /// The versions of the parts that were in PostgreSQL.
    pub(super) tables: BTreeMap<String, usize>,
    /// By its path in the archive.
    pub(super) files: BTreeMap<String, Member>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Member {
    bytes: u64,
    sha256: String,
}

/// Hashes and counts what goes through.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    fn member(self) -> Member {
        Member { bytes: self.bytes, sha256: format!("{:x}", self.hash.finalize()) }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.hash.update(buffer.get(..length).unwrap_or_default());
        self.bytes += u64::try_from(length).unwrap_or(0);
        Ok(length)
    }
}

/// Writes a backup into a file without a lasting place.
pub(super) struct Writer {
    archive: Builder<GzEncoder<BufWriter<NamedTempFile>>>,
    files: BTreeMap<String, Member>,
}

impl Writer {
    /// In that folder.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let file = BufWriter::new(NamedTempFile::new_in(folder)?);
        let archive = Builder::new(GzEncoder::new(file, Compression::fast()));
        Ok(Self { archive, files: BTreeMap::new() })
    }

    /// Adds a file under a path in the archive. One that grows meanwhile is added as long as it was.
    pub(super) fn add(&mut self, path: &str, file: &Path) -> io::Result<()> {
        let file = File::open(file)?;
        let bytes = file.metadata()?.len();
        let mut reader = Hashing::new(BufReader::new(file).take(bytes));
        self.archive.append_data(&mut header(bytes), path, &mut reader)?;
        let member = reader.member();
        if member.bytes != bytes {
            return Err(io::Error::other("it became shorter while it was read; try again"));
        }
        self.files.insert(path.to_owned(), member);
        Ok(())
    }

    /// Adds the manifest, with which the backup is whole.
    pub(super) fn finish(
        mut self,
        manifest: impl FnOnce(BTreeMap<String, Member>) -> Manifest,
    ) -> io::Result<NamedTempFile> {
        let manifest = serde_json::to_vec_pretty(&manifest(self.files))?;
        let bytes = u64::try_from(manifest.len()).unwrap_or(u64::MAX);
        self.archive.append_data(&mut header(bytes), MANIFEST, &*manifest)?;
        let file =
            self.archive.into_inner()?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}

fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header
}

/// Unpacks a backup into a folder, and checks that all of it is there as it was written.
///
/// # Errors
/// What is wrong with it.
pub(super) fn unpack(file: &Path, folder: &Path) -> Result<Manifest, String> {
    let broken = |fault: &dyn std::fmt::Display| format!("{}: {fault}", file.display());
    let damaged = |fault: &io::Error| broken(&format_args!("this is no backup, or it is damaged: {fault}"));
    let opened = File::open(file).map_err(|error| broken(&error))?;
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(opened)));
    let mut found = BTreeMap::new();
    let mut manifest = None;
    for entry in archive.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let is_plain = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
        if manifest.is_some() || entry.header().entry_type() != EntryType::Regular || !is_plain {
            return Err(broken(&format_args!(
                "this is no backup: it should not have `{}`",
                path.escape_debug()
            )));
        }
        if path == MANIFEST {
            let mut text = Vec::new();
            entry.take(MAX_MANIFEST).read_to_end(&mut text).map_err(|error| damaged(&error))?;
            let read: Manifest = serde_json::from_slice(&text)
                .map_err(|error| broken(&format_args!("its manifest cannot be read: {error}")))?;
            if read.format > FORMAT {
                return Err(broken(&format_args!(
                    "it was made by toolrack {}, in a newer format; restore it with that version or a newer one",
                    read.toolrack
                )));
            }
            manifest = Some(read);
            continue;
        }
        let to = folder.join(&path);
        let member = (|| {
            if let Some(parent) = to.parent() {
                private_folder(parent)?;
            }
            private_file(&to)?;
            let mut reader = Hashing::new(&mut entry);
            let mut out = BufWriter::new(fs::OpenOptions::new().write(true).truncate(true).open(&to)?);
            io::copy(&mut reader, &mut out)?;
            out.flush()?;
            out.get_ref().sync_all()?;
            Ok(reader.member())
        })();
        let member = member.map_err(|error| damaged(&error))?;
        if found.insert(path.clone(), member).is_some() {
            return Err(broken(&format_args!("this is no backup: it has `{}` twice", path.escape_debug())));
        }
    }
    // To the end, so that the checksum of the compression is compared.
    let rest = io::copy(&mut archive.into_inner(), &mut io::sink());
    rest.map_err(|error| damaged(&error))?;
    let manifest = manifest.ok_or_else(|| broken(&"the backup is cut off: it has no manifest"))?;
    let mut names = manifest.files.keys().chain(found.keys());
    if let Some(name) = names.find(|name| manifest.files.get(*name) != found.get(*name)) {
        return Err(broken(&format_args!("`{}` is not what was written", name.escape_debug())));
    }
    Ok(manifest)
}
