//! The file manager and the inbox.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use registry_core::{Caller, Permission, Registry, Resources, ToolCall};
use serde_json::{Value, json};
use tools::{FileFolder, Inbox};

use super::{called, rows, start};
use crate::support::Rack;

/// Fewer than the calls that one user may make of `create_document` in a day.
const ROWS_OF_A_SERVER: usize = 40;

/// A folder with what an attacker may have found a way to put there, a secret beside it, and an inbox.
struct Site(tempfile::TempDir);

impl Site {
    fn prepare() -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        let (root, outside) = (site.files(), site.0.path().join("outside"));
        for folder in [&root.join("real"), &root.join("notes"), &outside] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(outside.join("secret.txt"), "secret").unwrap();
        fs::write(root.join("kept.md"), "kept").unwrap();
        for (to, link) in [
            (outside.join("secret.txt"), "link-to-file"),
            (outside.clone(), "link-to-folder"),
            ("/".into(), "link-to-root"),
            ("../../outside".into(), "real/link-up"),
            ("/nowhere/at/all".into(), "real/dangling"),
            ("loop".into(), "loop"),
            ("/dev/zero".into(), "device-link"),
            ("/proc/self/cwd".into(), "magic-link"),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        fs::hard_link(outside.join("secret.txt"), root.join("hard")).unwrap();
        drop(UnixListener::bind(root.join("socket")).unwrap());
        site
    }

    fn files(&self) -> PathBuf {
        self.0.path().join("files")
    }

    fn inbox(&self) -> PathBuf {
        self.0.path().join("inbox")
    }

    fn resources(&self) -> Resources {
        Resources::new().with(FileFolder::new(self.files())).with(Inbox::new(self.inbox()))
    }
}

/// All that is below a folder, with what files say.
fn listing(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let is = fs::symlink_metadata(&path).unwrap();
        let said = if is.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
        if is.is_dir() {
            found.extend(listing(&path));
        }
        found.push((path, said));
    }
    found.sort();
    found
}

async fn refused(rack: &Rack, tool: &str, arguments: &Value, reported: &str, faults: &mut Vec<String>) {
    let (success, said) = called(rack, tool, arguments).await;
    if success || !said.contains(reported) {
        faults.push(format!("{tool} {arguments}: success {success}, `{said}` and not `{reported}`"));
    }
}

#[tokio::test]
async fn t8_every_attack_on_the_folder_of_files_is_refused_with_a_message() {
    let table = rows(include_str!("../../data/path_attacks.txt"));
    let site = Site::prepare();
    let mut faults = Vec::new();
    for rows in table.chunks(ROWS_OF_A_SERVER) {
        let rack = start(site.resources()).await;
        for (kind, row) in rows {
            let text = row[0].as_str().unwrap();
            let (create, delete) = ("file_manager.create_document", "file_manager.delete_file");
            let (document, path) = (json!({"path": text, "content": "hostile"}), json!({"path": text}));
            let before = listing(site.0.path());
            match kind.as_str() {
                "refused" => {
                    let reported = row[1].as_str().unwrap();
                    refused(&rack, create, &document, reported, &mut faults).await;
                    refused(&rack, delete, &path, reported, &mut faults).await;
                }
                "there" => {
                    refused(&rack, create, &document, "there is already", &mut faults).await;
                    refused(&rack, delete, &path, row[1].as_str().unwrap(), &mut faults).await;
                }
                "allowed" => {
                    let (success, said) = called(&rack, create, &document).await;
                    let file = fs::read_to_string(site.files().join(text)).unwrap_or_default();
                    if !success || file != "hostile" {
                        faults.push(format!("{text} is not made: {said}"));
                    }
                    if !called(&rack, delete, &path).await.0 || site.files().join(text).exists() {
                        faults.push(format!("{text} is not deleted"));
                    }
                    // Its folders stay, empty.
                    continue;
                }
                "note" => {
                    let (success, said) = called(&rack, "claim", &json!({"assertion": text})).await;
                    let made = listing(&site.inbox());
                    let file = made.iter().find(|(path, _)| path.is_file());
                    let in_place = file.is_some_and(|(path, said)| {
                        path.parent() == Some(&site.inbox().join("claims")) && said.contains(text.trim())
                    });
                    if !success || !in_place {
                        faults.push(format!("{text} is not in the inbox: {said}; {made:?}"));
                    }
                    fs::remove_dir_all(site.inbox()).unwrap();
                }
                kind => panic!("there are rows `refused`, `there`, `allowed` and `note`, and no `{kind}`"),
            }
            if listing(site.0.path()) != before {
                faults.push(format!("{kind} {text:?} has changed something"));
            }
        }
    }
    let count = |kind: &str| table.iter().filter(|(of, _)| of == kind).count();
    assert!(count("refused") >= 50 && count("there") >= 8 && count("allowed") >= 6 && count("note") >= 6);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// A folder that becomes a link and a folder again, as fast as that goes, while files are made and deleted in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t8_a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
    let site = Site::prepare();
    let before = listing(&site.0.path().join("outside"));
    let stop = Arc::new(AtomicBool::new(false));
    let changing = {
        let (root, outside, stop) = (site.files(), site.0.path().join("outside"), Arc::clone(&stop));
        std::thread::spawn(move || {
            let here = root.join("flip");
            let mut turns = 0_u32;
            // A call may make or use it at any of these steps, so that each of them may fail.
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::create_dir(&here);
                let _ = fs::remove_dir_all(&here);
                let _ = symlink(&outside, &here);
                let _ = fs::remove_file(&here);
                turns += 1;
            }
            turns
        })
    };
    let registry =
        Registry::builder().resources(site.resources()).approve_destructive(false).build().unwrap();
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < Duration::from_secs(2) {
        // No user is to reach the daily limit.
        let context = registry.context(Caller::new(format!("user-{calls}"), Permission::User));
        let create = json!({"path": format!("flip/{calls}.md"), "content": "x"});
        registry.execute(&context, ToolCall::new("file_manager.create_document", create)).await;
        let delete = json!({"path": "flip/secret.txt"});
        let deleted = registry.execute(&context, ToolCall::new("file_manager.delete_file", delete)).await;
        assert!(deleted.result.is_err());
        calls += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let turns = changing.join().unwrap();
    assert!(calls > 10 && turns > 10, "{calls} calls, {turns} turns");
    assert_eq!(listing(&site.0.path().join("outside")), before);
}
