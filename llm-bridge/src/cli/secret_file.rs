//! Files with a secret of this program's own, which is made once.

use std::{io, io::Write, path::Path};

use registry_core::private::private_folder;

/// Bytes that nobody can guess.
pub(super) fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Makes a file that nobody else can read, whole or not at all. One that another program has made first is left as it is.
pub(super) fn create(file: &Path, secret: &str) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_folder(folder)?;
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(written, "{secret}")?;
    written.as_file().sync_all()?;
    match written.persist_noclobber(file) {
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop).map_err(|error| error.error),
    }
}
