//! The file of a backup: a tar archive, compressed by gzip, whose last member is a manifest with the hash of each of the others.

use std::{
    collections::BTreeMap,
    fmt::Display,
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
/// A manifest is not longer than this, in bytes, so that there are not more files than it can name.
pub(super) const MAX_MANIFEST: u64 = 64 << 20;
/// What a file takes in it besides its path, at least.
const MEMBER_BYTES: u64 = 100;
/// The longest path in an archive, in bytes.
const MAX_PATH: u64 = 8 << 10;
/// What stays free of the disk that a backup is uploaded to or unpacked on, in bytes.
pub(super) const RESERVED: u64 = 256 << 20;
/// What may come after the end of an archive, in bytes: it is filled up to whole blocks.
const MAX_PADDING: u64 = 1 << 20;

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
        if bytes > MAX_MANIFEST {
            return Err(io::Error::other("there are more files than a backup can have"));
        }
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

/// How many bytes are free on the disk of a folder; `None` where the system does not say.
#[cfg(unix)]
pub(super) fn free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
pub(super) fn free(_: &Path) -> Option<u64> {
    None
}

/// Unpacks a backup into a folder, as far as its disk has room, and checks that all of it is there as it was written. Its manifest has no more
/// than so many bytes.
///
/// # Errors
/// What is wrong with it.
pub(super) fn unpack(
    file: &Path,
    folder: &Path,
    max_manifest: u64,
    free: impl Fn(&Path) -> Option<u64>,
) -> Result<Manifest, String> {
    let broken = |fault: &dyn Display| format!("{}: {fault}", file.display());
    let damaged = |fault: io::Error| broken(&format_args!("this is no backup, or it is damaged: {fault}"));
    let no_backup = |fault: &dyn Display| broken(&format_args!("this is no backup: {fault}"));
    let opened = File::open(file).map_err(|error| broken(&error))?;
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(opened)));
    let (mut found, mut named) = (BTreeMap::new(), 0);
    let (mut long_path, mut manifest) = (None, None);
    // As they are: the library would read paths of any length.
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let size = entry.size();
        if entry.header().entry_type() == EntryType::GNULongName && long_path.is_none() {
            if size > MAX_PATH {
                return Err(no_backup(&"it has a path of more bytes than any has"));
            }
            let mut path = Vec::new();
            entry.read_to_end(&mut path).map_err(damaged)?;
            long_path = Some(path);
            continue;
        }
        let path = long_path.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = String::from_utf8_lossy(path.strip_suffix(b"\0").unwrap_or(&path)).into_owned();
        let is_plain = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
        if manifest.is_some() || entry.header().entry_type() != EntryType::Regular || !is_plain {
            return Err(no_backup(&format_args!("it should not have `{}`", path.escape_debug())));
        }
        if path == MANIFEST {
            let cannot = |why: &dyn Display| broken(&format_args!("its manifest cannot be read: {why}"));
            if size > max_manifest {
                return Err(cannot(&format_args!(
                    "it has {size} bytes, and none has more than {max_manifest}"
                )));
            }
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(damaged)?;
            let read: Manifest = serde_json::from_slice(&text).map_err(|error| cannot(&error))?;
            if read.format > FORMAT {
                return Err(broken(&format_args!(
                    "it was made by toolrack {}, in a newer format; restore it with that version or a newer one",
                    read.toolrack
                )));
            }
            manifest = Some(read);
            continue;
        }
        named += MEMBER_BYTES + u64::try_from(path.len()).unwrap_or(u64::MAX);
        if named > max_manifest {
            return Err(no_backup(&"it has more files than a backup can have"));
        }
        if let Some(room) = free(folder).map(|free| free.saturating_sub(RESERVED))
            && size > room
        {
            let (size, room, reserved) = (size >> 20, room >> 20, RESERVED >> 20);
            return Err(broken(&format_args!(
                "there is no room for it: `{}` has {size} MiB, and the disk of {} has {room} MiB beside the {reserved} MiB that stay free",
                path.escape_debug(),
                folder.display()
            )));
        }
        let member = write(&mut entry, &folder.join(&path)).map_err(damaged)?;
        if found.insert(path.clone(), member).is_some() {
            return Err(no_backup(&format_args!("it has `{}` twice", path.escape_debug())));
        }
    }
    // To the end, so that the checksum of the compression is compared.
    let rest = io::copy(&mut archive.into_inner().take(MAX_PADDING + 1), &mut io::sink()).map_err(damaged)?;
    if rest > MAX_PADDING {
        return Err(no_backup(&"more comes after its end"));
    }
    let manifest = manifest.ok_or_else(|| broken(&"the backup is cut off: it has no manifest"))?;
    let mut names = manifest.files.keys().chain(found.keys());
    if let Some(name) = names.find(|name| manifest.files.get(*name) != found.get(*name)) {
        return Err(broken(&format_args!("`{}` is not what was written", name.escape_debug())));
    }
    Ok(manifest)
}

/// Writes a member of an archive to its place.
fn write(member: &mut impl Read, to: &Path) -> io::Result<Member> {
    if let Some(parent) = to.parent() {
        private_folder(parent)?;
    }
    private_file(to)?;
    let mut reader = Hashing::new(member);
    let mut out = BufWriter::new(fs::OpenOptions::new().write(true).truncate(true).open(to)?);
    io::copy(&mut reader, &mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(reader.member())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive that is written as long as it is read: members, each with a path and so many zeros.
    fn archive(
        in_folder: &Path,
        kind: EntryType,
        members: impl Iterator<Item = (String, u64)>,
    ) -> std::path::PathBuf {
        let file = in_folder.join("backup.tar.gz");
        let mut builder = Builder::new(GzEncoder::new(File::create(&file).unwrap(), Compression::fast()));
        for (path, bytes) in members {
            let mut header = header(bytes);
            header.set_entry_type(kind);
            header.set_path(path).unwrap();
            header.set_cksum();
            builder.append(&header, io::repeat(0).take(bytes)).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap();
        file
    }

    /// What is said to such an archive, where the disk has so many MiB; and what of it was written.
    fn refused(kind: EntryType, room: u64, members: impl Iterator<Item = (String, u64)>) -> (String, usize) {
        let folder = tempfile::tempdir().unwrap();
        let file = archive(folder.path(), kind, members);
        let into = folder.path().join("into");
        let said = unpack(&file, &into, MAX_MANIFEST, |_| Some((room << 20) + RESERVED)).unwrap_err();
        (said, fs::read_dir(into).map_or(0, Iterator::count))
    }

    #[test]
    fn b21_no_more_of_a_backup_is_unpacked_than_the_disk_has_room_for() {
        let two =
            || [("a", 1 << 20), ("b", 8 << 20)].map(|(path, bytes)| (path.to_owned(), bytes)).into_iter();
        let (said, written) = refused(EntryType::Regular, 3, two());
        assert!(said.contains("`b` has 8 MiB") && said.contains("has 3 MiB beside the 256 MiB"), "{said}");
        assert_eq!(written, 1);
        let (said, _) = refused(EntryType::Regular, 8, two());
        assert!(said.contains("no manifest"), "{said}");
    }

    #[test]
    fn b21_paths_manifest_number_and_end_of_a_backup_are_bounded() {
        let one = |path: &str, bytes| std::iter::once((path.to_owned(), bytes));
        let (said, _) = refused(EntryType::GNULongName, 1, one("long", MAX_PATH + 1));
        assert!(said.contains("path of more bytes"), "{said}");
        let (said, _) = refused(EntryType::Regular, 1, one(MANIFEST, MAX_MANIFEST + 1));
        assert!(said.contains("it has 67108865 bytes, and none has more than 67108864"), "{said}");
        for kind in [EntryType::GNUSparse, EntryType::XHeader, EntryType::GNULongLink, EntryType::Symlink] {
            let (said, written) = refused(kind, 1, one("odd", 512));
            assert!(said.contains("should not have `odd`") && written == 0, "{said}");
        }

        let folder = tempfile::tempdir().unwrap();
        let many = (0..100).map(|number| (format!("{number:0>100}"), 1));
        let (file, into) = (archive(folder.path(), EntryType::Regular, many), folder.path().join("many"));
        let said = unpack(&file, &into, 1000, |_| None).unwrap_err();
        assert!(said.contains("more files than a backup can have"), "{said}");
        assert_eq!(fs::read_dir(into).unwrap().count(), 5);

        let file = archive(folder.path(), EntryType::Regular, one("a", 1));
        let mut after = GzEncoder::new(Vec::new(), Compression::fast());
        let mut tar = Vec::new();
        GzDecoder::new(File::open(&file).unwrap()).read_to_end(&mut tar).unwrap();
        after.write_all(&tar).unwrap();
        io::copy(&mut io::repeat(0).take(MAX_PADDING + 1), &mut after).unwrap();
        fs::write(&file, after.finish().unwrap()).unwrap();
        let said = unpack(&file, &folder.path().join("into"), MAX_MANIFEST, |_| None).unwrap_err();
        assert!(said.contains("more comes after its end"), "{said}");
    }

    #[test]
    fn b21_a_backup_has_long_paths_and_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (content, to) = (folder.path().join("content"), folder.path().join("backup.tar.gz"));
        fs::write(&content, "text").unwrap();
        let path = format!("data/{}/{}", "x".repeat(200), "\u{e9}".repeat(100));
        let mut writer = Writer::new(folder.path()).unwrap();
        writer.add(&path, &content).unwrap();
        let manifest = |files| Manifest {
            format: FORMAT,
            toolrack: String::new(),
            made_at: Timestamp::UNIX_EPOCH,
            server: String::new(),
            public_key: None,
            tables: BTreeMap::new(),
            files,
        };
        writer.finish(manifest).unwrap().persist(&to).unwrap();
        let into = folder.path().join("into");
        let manifest = unpack(&to, &into, MAX_MANIFEST, free).unwrap();
        assert!(manifest.files.contains_key(&path), "{manifest:?}");
        assert_eq!(fs::read_to_string(into.join(path)).unwrap(), "text");
    }
}
