//! The attack table of the file manager: each row is a path that must not be written to or deleted. To add one, add a line.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
};

use registry_core::result::ErrorKind;

use super::*;

/// The path, and a part of what the model is told.
const REFUSED: &[(&str, &str)] = &[
    ("", "is no path"),
    ("/etc/passwd", "begins with `/`"),
    ("//etc/passwd", "begins with `/`"),
    ("..", "`.` or `..`"),
    ("../outside.txt", "`.` or `..`"),
    ("notes/../../outside.txt", "`.` or `..`"),
    ("notes/..", "`.` or `..`"),
    (".", "`.` or `..`"),
    ("./plan.md", "`.` or `..`"),
    ("notes/./plan.md", "`.` or `..`"),
    ("notes//plan.md", "empty name"),
    ("notes/", "empty name"),
    (".bashrc", "begins with `.`"),
    ("notes/.git/config", "begins with `.`"),
    ("...", "begins with `.`"),
    ("-rf", "begins with `.`, `-`"),
    ("~/x", "`~`"),
    ("~root", "`~`"),
    ("plan.md\0.txt", "no file's name may have"),
    ("\0", "no file's name may have"),
    ("plan\n.md", "no file's name may have"),
    ("plan\u{1b}[2J.md", "no file's name may have"),
    ("..\\outside.txt", "no file's name may have"),
    ("C:\\windows\\x", "no file's name may have"),
    ("\\\\server\\share", "no file's name may have"),
    (" plan.md", "space"),
    ("plan.md ", "space"),
    ("a/b/c/d/e/f/g/h/i", "too many folders"),
    // Prepared on disk, see `prepare`.
    ("link-to-file/x.md", "`link-to-file` is no folder"),
    ("link-to-folder/secret.txt", "`link-to-folder` is no folder"),
    ("link-to-root/etc/passwd", "`link-to-root` is no folder"),
    ("real/link-up/secret.txt", "`real/link-up` is no folder"),
    ("real/dangling/x.md", "`real/dangling` is no folder"),
    ("loop/x.md", "`loop` is no folder"),
    ("kept.md/x.md", "`kept.md` is no folder"),
];

/// What is there and may be neither written over nor deleted: the path, what a deletion is told.
const NOT_DELETED: &[(&str, &str)] = &[
    ("link-to-file", "is a link"),
    ("link-to-folder", "is a link"),
    ("loop", "is a link"),
    ("real/dangling", "is a link"),
    ("device-link", "is a link"),
    ("real", "is a folder"),
    ("socket", "is no file"),
    ("hard", "has other names too"),
];

struct Site {
    whole: tempfile::TempDir,
    folder: FileFolder,
}

/// A folder with what an attacker may have found a way to put there, and a secret beside it.
fn prepare() -> Site {
    let whole = tempfile::tempdir().unwrap();
    let (root, outside) = (whole.path().join("files"), whole.path().join("outside"));
    fs::create_dir_all(root.join("real")).unwrap();
    fs::create_dir_all(root.join("notes")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "secret").unwrap();
    fs::write(root.join("kept.md"), "kept").unwrap();
    symlink(outside.join("secret.txt"), root.join("link-to-file")).unwrap();
    symlink(&outside, root.join("link-to-folder")).unwrap();
    symlink("/", root.join("link-to-root")).unwrap();
    symlink("../../outside", root.join("real/link-up")).unwrap();
    symlink("/nowhere/at/all", root.join("real/dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/dev/zero", root.join("device-link")).unwrap();
    fs::hard_link(outside.join("secret.txt"), root.join("hard")).unwrap();
    drop(UnixListener::bind(root.join("socket")).unwrap());
    Site { folder: FileFolder::new(root), whole }
}

impl Site {
    fn root(&self) -> std::path::PathBuf {
        self.whole.path().join("files")
    }

    /// All that is there, with what files say.
    fn all(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.whole.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let is = fs::symlink_metadata(&path).unwrap();
                let said = if is.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
                found.push((path.display().to_string(), said));
                if is.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

async fn refused(result: Result<ToolResult, ToolError>, path: &str, told: &str) {
    let error = result.expect_err(path);
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{path:?}: {error}");
    assert!(error.feedback().contains(told), "{path:?}: {}", error.feedback());
}

#[tokio::test]
async fn t8_file_manager_refuses_every_path_out_of_its_folder() {
    let site = prepare();
    let before = site.all();
    let long = ["a".repeat(129), format!("{}x", "a/".repeat(300))];
    let long = long.iter().map(|path| (path.as_str(), "too long"));
    for (path, told) in REFUSED.iter().copied().chain(long) {
        refused(site.folder.create(path, "hostile").await, path, told).await;
        refused(site.folder.delete(path).await, path, told).await;
    }
    for (path, told) in NOT_DELETED {
        refused(site.folder.create(path, "hostile").await, path, "there is already").await;
        refused(site.folder.delete(path).await, path, told).await;
    }
    assert_eq!(site.all(), before, "nothing has changed, and nothing hidden is left");
}

#[tokio::test]
async fn t8_file_manager_makes_and_deletes_files() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder::new(whole.path().join("to/files"));
    for path in ["plan.md", "notes/2026/plän 12:30.md", "水.txt", "a/b/c/d/e/f/g/h", "$(reboot).md", "a..b"]
    {
        let made = folder.create(path, "é\n").await.unwrap();
        assert_eq!(made.value["created"], path);
        assert_eq!(made.side_effects, [format!("created:files/{path}")]);
        let file = whole.path().join("to/files").join(path);
        assert_eq!(fs::read_to_string(&file).unwrap(), "é\n");
        refused(folder.create(path, "other").await, path, "there is already").await;
        assert_eq!(fs::read_to_string(&file).unwrap(), "é\n");
        let deleted = folder.delete(path).await.unwrap();
        assert_eq!(deleted.side_effects, [format!("deleted:files/{path}")]);
        assert!(!file.exists());
        refused(folder.delete(path).await, path, "there is no file").await;
    }
    assert_eq!(mode(&whole.path().join("to/files")), 0o700, "for nobody else to read");
}

#[tokio::test]
async fn t8_file_manager_bounds_a_document() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder::new(whole.path());
    refused(folder.create("x.md", &"x".repeat(MAX_BYTES + 1)).await, "x.md", "1048577 bytes").await;
    folder.create("x.md", &"x".repeat(MAX_BYTES)).await.unwrap();
    assert_eq!(mode(&whole.path().join("x.md")), 0o600);
}

#[tokio::test]
async fn t8_file_manager_makes_one_file_of_many_at_once() {
    let site = prepare();
    let one = || site.folder.create("notes/same.md", "x");
    let results = tokio::join!(one(), one(), one(), one());
    let made = [results.0, results.1, results.2, results.3].into_iter().filter(Result::is_ok).count();
    assert_eq!(made, 1);
    let files: Vec<_> = fs::read_dir(site.root().join("notes")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[tokio::test]
async fn t8_file_manager_says_when_the_folder_cannot_be_written() {
    let whole = tempfile::tempdir().unwrap();
    fs::write(whole.path().join("file"), "").unwrap();
    let error = FileFolder::new(whole.path().join("file")).create("x.md", "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.feedback(), "The folder for files cannot be written to. Say so to the user.");
    assert!(error.message().contains("file"), "{error}");
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
