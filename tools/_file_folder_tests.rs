//! What the file manager does. What it must not do is in the attack table `llm-bridge/tests/data/path_attacks.txt`.

use std::{fs, path::Path};

use registry_core::ErrorKind;

use super::*;

async fn refused(result: Result<ToolResult, ToolError>, path: &str, expected: &str) {
    let error = result.expect_err(path);
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{path:?}: {error}");
    assert!(error.feedback().contains(expected), "{path:?}: {}", error.feedback());
}

#[tokio::test]
async fn t8_file_manager_makes_and_deletes_files() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder::new(whole.path().join("to/files"));
    for path in ["plan.md", "notes/2026/plän 12:30.md", "水.txt", "a/b/c/d/e/f/g/h", "$(reboot).md", "a..b"]
    {
        let made = folder.create("ada", path, "é\n").await.unwrap();
        assert_eq!(made.value["created"], path);
        assert_eq!(made.side_effects, [format!("created:files/{path}")]);
        let file = whole.path().join("to/files").join(path);
        assert_eq!(fs::read_to_string(&file).unwrap(), "é\n");
        refused(folder.create("ada", path, "other").await, path, "there is already").await;
        assert_eq!(fs::read_to_string(&file).unwrap(), "é\n");
        let deleted = folder.delete(path).await.unwrap();
        assert_eq!(deleted.side_effects, [format!("deleted:files/{path}")]);
        assert!(!file.exists());
        refused(folder.delete(path).await, path, "there is no file").await;
    }
    assert_eq!(mode(&whole.path().join("to/files")), 0o700, "for nobody else to read");
}

#[tokio::test]
async fn a16_file_manager_takes_no_name_with_a_character_that_nobody_sees() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder::new(whole.path());
    for hidden in ['\u{ad}', '\u{2060}', '\u{e0041}', '\u{202e}', '\u{85}', '\n'] {
        let path = format!("no{hidden}te.md");
        refused(folder.create("ada", &path, "x").await, &path, "a character that no file's name may have")
            .await;
    }
}

#[tokio::test]
async fn t8_file_manager_bounds_a_document() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder::new(whole.path());
    refused(folder.create("ada", "x.md", &"x".repeat(MAX_BYTES + 1)).await, "x.md", "1048577 bytes").await;
    folder.create("ada", "x.md", &"x".repeat(MAX_BYTES)).await.unwrap();
    assert_eq!(mode(&whole.path().join("x.md")), 0o600);
}

#[tokio::test]
async fn a9_all_files_of_a_folder_have_a_size_and_a_number() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder { all: Room { mebibytes: 1, files: 4 }, ..FileFolder::new(whole.path()) };
    let full = |made: Result<ToolResult, ToolError>| {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(
            error.feedback().contains("is full") && error.message().contains("1 MiB and 4 files"),
            "{error}"
        );
    };
    folder.create("ada", "a/one.md", &"x".repeat(MAX_BYTES - 1)).await.unwrap();
    full(folder.create("ada", "b.md", "xx").await);
    folder.create("ada", "b.md", "x").await.unwrap();
    folder.create("ada", "c.md", "").await.unwrap();
    full(folder.create("ada", "d.md", "").await);
    folder.delete("c.md").await.unwrap();
    folder.create("ada", "d.md", "").await.unwrap();
}

#[tokio::test]
async fn b21_what_a_user_has_made_leaves_room_for_others() {
    let whole = tempfile::tempdir().unwrap();
    fs::write(whole.path().join("probe"), "").unwrap();
    let probe = fs::File::open(whole.path().join("probe")).unwrap();
    if rustix::fs::fsetxattr(&probe, OWNER, b"x", rustix::fs::XattrFlags::empty()).is_err() {
        eprintln!(
            "skipped: b21_what_a_user_has_made_leaves_room_for_others: the file system keeps no attributes"
        );
        return;
    }
    let folder = FileFolder {
        of_user: Room { mebibytes: 1, files: 4 },
        ..FileFolder::new(whole.path().join("files"))
    };
    let full = |made: Result<ToolResult, ToolError>| {
        let error = made.unwrap_err();
        assert_eq!(
            (error.kind(), error.message().contains("1 MiB and 4 files of yours")),
            (ErrorKind::Failed, true),
            "{error}"
        );
    };
    folder.create("ada", "a/one.md", &"x".repeat(MAX_BYTES - 1)).await.unwrap();
    full(folder.create("ada", "b.md", "xx").await);
    folder.create("bob", "b.md", &"x".repeat(MAX_BYTES)).await.unwrap();
    // The folder counts for who has made it.
    folder.create("bo", "a/b/c/d.md", "x").await.unwrap();
    folder.create("ada", "a/c.md", "x").await.unwrap();
    full(folder.create("ada", "d/e.md", "").await);
    folder.create("ada", "d.md", "").await.unwrap();
    full(folder.create("ada", "e.md", "").await);
    folder.delete("a/one.md").await.unwrap();
    folder.create("ada", "e.md", "x").await.unwrap();
}

#[tokio::test]
async fn t8_file_manager_makes_one_file_of_many_at_once() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder::new(whole.path());
    let one = || folder.create("ada", "notes/same.md", "x");
    let results = tokio::join!(one(), one(), one(), one());
    let made = [results.0, results.1, results.2, results.3].into_iter().filter(Result::is_ok).count();
    assert_eq!(made, 1);
    let files: Vec<_> = fs::read_dir(whole.path().join("notes")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[tokio::test]
async fn t8_file_manager_says_when_the_folder_cannot_be_written() {
    let whole = tempfile::tempdir().unwrap();
    fs::write(whole.path().join("file"), "").unwrap();
    let error = FileFolder::new(whole.path().join("file")).create("ada", "x.md", "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.feedback(), "The folder for files cannot be written to. Say so to the user.");
    assert!(error.message().contains("file"), "{error}");
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a9_files_that_are_made_at_once_have_no_more_room_than_one_after_the_other() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder { all: Room { mebibytes: 1, files: 4 }, ..FileFolder::new(whole.path()) };
    let made = (0..24).map(|number| {
        let folder = folder.clone();
        tokio::spawn(async move { folder.create("ada", &format!("{number}.md"), "x").await.is_ok() })
    });
    let made: Vec<_> = made.collect();
    let mut count = 0;
    for made in made {
        count += usize::from(made.await.unwrap());
    }
    assert_eq!((count, fs::read_dir(whole.path()).unwrap().count()), (4, 4));
}

#[tokio::test]
async fn a9_folders_count_and_go_with_what_was_in_them() {
    let whole = tempfile::tempdir().unwrap();
    let folder = FileFolder { all: Room { mebibytes: 1, files: 6 }, ..FileFolder::new(whole.path()) };
    let entries = || WalkDir::new(whole.path()).min_depth(1).into_iter().count();
    let full = folder.create("ada", "a/b/c/d/e/f/g.md", "x").await.unwrap_err();
    assert!(full.feedback().contains("is full"), "{full}");
    assert_eq!(entries(), 0);
    folder.create("ada", "a/b/one.md", "x").await.unwrap();
    folder.create("ada", "a/b/two.md", "x").await.unwrap();
    assert_eq!(entries(), 4);
    folder.delete("a/b/one.md").await.unwrap();
    refused(folder.create("ada", "a/b/two.md", "y").await, "two", "there is already").await;
    refused(folder.create("ada", "a/b/two.md/c/d.md", "y").await, "d", "is no folder").await;
    assert_eq!(entries(), 3, "nothing is left of what was not made");
    folder.delete("a/b/two.md").await.unwrap();
    assert_eq!(entries(), 0);
    assert!(whole.path().exists());
}
