//! Backups of running servers, on both stores, and what is restored from them: requirement B21.

use std::{fs, process::Output};

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    program::{Rack, Serving, client, mock},
    servers::postgres,
};

/// What a command says that fails.
fn refused(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it succeeds: {said}");
    said
}

/// Everything of a server that a user can have: a response that can be continued, a document, a file.
async fn fill(rack: &Rack, server: &Serving, key: &str) -> String {
    let client = client();
    let asked = server.post(&client, "/v1/responses", key, &json!({"input": "Hello"}));
    let response: Value = asked.send().await.unwrap().json().await.unwrap();
    let upload = client
        .post(format!("{}/api/documents?name=tea.md", server.base))
        .bearer_auth(key)
        .header("content-type", "application/octet-stream");
    let uploaded = upload.body("# Tea\n\nGreen tea is steeped at 75 degrees.\n").send().await.unwrap();
    assert!(uploaded.status().is_success(), "{uploaded:?}");
    fs::create_dir_all(rack.path(".toolrack/files/notes")).unwrap();
    fs::write(rack.path(".toolrack/files/notes/plan.md"), "the plan").unwrap();
    response["id"].as_str().unwrap().to_owned()
}

async fn has_all(rack: &Rack, server: &Serving, key: &str, response: &str) {
    let client = client();
    let get = async |path: &str| {
        client.get(format!("{}{path}", server.base)).bearer_auth(key).send().await.unwrap()
    };
    assert_eq!(get(&format!("/v1/responses/{response}")).await.status(), StatusCode::OK);
    let documents: Value = get("/api/documents").await.json().await.unwrap();
    assert!(documents.to_string().contains("uploads/ada/tea.md"), "{documents}");
    assert!(rack.done(&["documents", "search", "green tea"]).contains("75 degrees"));
    assert_eq!(fs::read_to_string(rack.path(".toolrack/files/notes/plan.md")).unwrap(), "the plan");
}

/// Backs up a server that is called all the time, and restores it elsewhere.
async fn is_restored(of: &str, into: &str) {
    let tools = mock("count.free", "");
    let rack = Rack::new(of, &tools);
    rack.done(&["user", "add", "ada"]);
    let (_, key) = rack.key("ada", &[]);
    let server = rack.serve();
    let response = fill(&rack, &server, &key).await;
    let (client, stop) = (client(), std::sync::atomic::AtomicBool::new(false));
    let calls = async {
        let mut calls = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            assert_eq!(server.call(&client, &key, "count.free").await.status(), StatusCode::OK);
            calls += 1;
        }
        calls
    };
    let back_up = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let twin = rack.twin();
        let said = tokio::task::spawn_blocking(move || twin.run(&["backup", "all.tar.gz"])).await.unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        String::from_utf8(said.stderr).unwrap()
    };
    let (calls, said) = tokio::join!(calls, back_up);
    assert!(calls > 0 && said.contains("the key that signs the audit is not in it"), "{calls}: {said}");
    assert!(refused(&rack.run(&["backup", "all.tar.gz"])).contains("there is already"));
    // Nothing is left behind.
    let left: Vec<_> = fs::read_dir(rack.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".backup-")), "{left:?}");
    let public = rack.done(&["audit", "key"]).trim().to_owned();
    let file = rack.path("all.tar.gz");
    let file = file.to_str().unwrap();
    let said = refused(&rack.run(&["restore", file, "--replace"]));
    assert!(said.contains("uses"), "{said}");
    server.end();

    let other = Rack::new(into, &tools);
    let restored = String::from_utf8(other.run(&["restore", file]).stderr).unwrap();
    assert!(restored.contains("restored ") && restored.contains(&public), "{restored}");
    assert!(!other.path(".toolrack/audit-key.pem").exists());
    let server = other.serve();
    has_all(&other, &server, &key, &response).await;
    server.end();
    // The chain of the backup goes on, and the heads of its server prove what came before.
    let chains = other.verified();
    assert!(chains.len() == 1 && chains[0].1 > 4, "{chains:?}");
    let heads = ["audit", "verify", "--heads", ".toolrack/restored-heads.jsonl", "--public-key", &public];
    assert!(other.done(&heads).contains("signed up to record"));
    let records = other.export(&[]);
    for command in ["toolrack backup", "toolrack restore"] {
        assert!(records.iter().any(|record| record["tool"] == command), "{command}");
    }

    // The first server, with its key, to the state of the backup.
    assert!(refused(&rack.run(&["restore", file])).contains("--replace"));
    rack.done(&["user", "add", "later"]);
    fs::write(rack.path(".toolrack/files/later.md"), "later").unwrap();
    rack.done(&["restore", file, "--replace"]);
    assert!(!rack.done(&["user", "list"]).contains("later"));
    assert!(!rack.path(".toolrack/files/later.md").exists());
    let aside = fs::read_dir(rack.path(".toolrack")).unwrap().map(|entry| entry.unwrap().path());
    let aside = aside.filter(|path| path.to_string_lossy().contains("before-restore-")).last().unwrap();
    assert_eq!(fs::read_to_string(aside.join("files/later.md")).unwrap(), "later");
    let server = rack.serve();
    has_all(&rack, &server, &key, &response).await;
    server.end();
    assert!(rack.done(&["audit", "verify"]).contains("signed up to record"));
    assert_eq!(rack.done(&["audit", "key"]).trim(), public);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_the_backup_of_a_running_server_is_restored_from_sqlite() {
    is_restored("", "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_the_backup_of_a_running_server_is_restored_from_postgresql() {
    let test = "b21_the_backup_of_a_running_server_is_restored_from_postgresql";
    let (Some(of), Some(into)) = (postgres(test), postgres(test)) else { return };
    is_restored(&format!("url = \"{of}\""), &format!("url = \"{into}\"")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_u29_a_server_sends_its_operator_a_backup_that_is_restored() {
    let tools = mock("count.free", "");
    let rack = Rack::new("", &tools);
    rack.done(&["user", "add", "ada", "--level", "admin"]);
    rack.done(&["user", "add", "eve", "--level", "admin", "--tenant", "acme"]);
    let (_, key) = rack.key("ada", &[]);
    let other = rack.done(&["key", "create", "eve", "--tenant", "acme"]).trim().to_owned();
    // What opens the accounts in the database.
    let sealing = format!("{}=", "A".repeat(43));
    fs::write(rack.path(".toolrack/connections.key"), &sealing).unwrap();
    let server = rack.serve();
    let response = fill(&rack, &server, &key).await;
    // What a server that was killed has left is in no backup.
    fs::create_dir(rack.path(".toolrack/.backup-left")).unwrap();
    fs::write(rack.path(".toolrack/.backup-left/0"), "half of it").unwrap();
    let client = client();
    let ask = async |key: &str| server.post(&client, "/api/backup", key, &json!({})).send().await.unwrap();
    assert_eq!(ask(&other).await.status(), StatusCode::FORBIDDEN, "the operator of another tenant");
    let sent = ask(&key).await;
    assert_eq!(sent.status(), StatusCode::OK);
    let header = |name: &str| sent.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/gzip");
    assert!(header("content-disposition").starts_with("attachment; filename=\"toolrack-"));
    let length: usize = header("content-length").parse().unwrap();
    let bytes = sent.bytes().await.unwrap();
    assert_eq!(bytes.len(), length);
    let file = rack.path("sent.tar.gz");
    fs::write(&file, &bytes).unwrap();
    let left = || {
        let names = fs::read_dir(rack.path(".toolrack")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".backup-")).count()
    };
    let began = std::time::Instant::now();
    while left() > 1 {
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "it is not deleted");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.end();
    // What came after the backup is not in it.
    let records = rack.export(&["--only", "success"]);
    let made = records.iter().find(|record| record["tool"] == "toolrack backup").unwrap();
    assert_eq!((&made["user"], &made["arguments"]["sent"]), (&json!("ada"), &json!(true)), "{made}");

    let twin = Rack::new("", &tools);
    twin.done(&["restore", file.to_str().unwrap()]);
    for left_out in ["audit-key.pem", "connections.key", ".backup-left"] {
        assert!(!twin.path(".toolrack").join(left_out).exists(), "{left_out}");
    }
    let server = twin.serve();
    has_all(&twin, &server, &key, &response).await;
    server.end();
    rack.done(&["restore", file.to_str().unwrap(), "--replace"]);
    assert_eq!(fs::read_to_string(rack.path(".toolrack/connections.key")).unwrap(), sealing, "it stays");
}

/// Files of an archive, by their paths in it.
type Members = Vec<(String, Vec<u8>)>;

#[test]
fn b21_a_backup_that_is_cut_off_or_altered_changes_nothing() {
    let rack = Rack::new("", "");
    assert!(refused(&rack.run(&["backup", "none.tar.gz"])).contains("nothing is stored yet"));
    rack.done(&["user", "add", "ada"]);
    // Which makes the key.
    rack.serve().end();
    rack.done(&["backup", "all.tar.gz", "--with-key"]);
    let whole = fs::read(rack.path("all.tar.gz")).unwrap();

    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    let changed = |change: &dyn Fn(&str, Vec<u8>) -> Members| {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*whole));
        let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(packed);
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            for (name, bytes) in change(&name, bytes) {
                let mut header = tar::Header::new_gnu();
                header.set_size(bytes.len() as u64);
                // Whatever the name, `..` too.
                header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
                header.set_cksum();
                builder.append(&header, &*bytes).unwrap();
            }
        }
        builder.into_inner().unwrap().finish().unwrap()
    };
    let same = |name: &str, bytes: Vec<u8>| vec![(name.to_owned(), bytes)];
    let cases = [
        ("", "damaged", b"no archive".to_vec()),
        ("cut", "damaged", whole[..whole.len() - 9].to_vec()),
        ("cut early", "damaged", whole[..whole.len() / 2].to_vec()),
        ("flipped", "", flipped),
        (
            "altered",
            "`store.db` is not what was written",
            changed(&|name, mut bytes| {
                if name == "store.db" {
                    bytes[100] ^= 1;
                }
                same(name, bytes)
            }),
        ),
        (
            "more",
            "`data/more` is not what was written",
            changed(&|name, bytes| {
                let more = vec![("data/more".to_owned(), b"more".to_vec())];
                if name == "store.db" { [more, same(name, bytes)].concat() } else { same(name, bytes) }
            }),
        ),
        (
            "less",
            "`audit-key.pem` is not what was written",
            changed(&|name, bytes| {
                if name == "audit-key.pem" { Vec::new() } else { same(name, bytes) }
            }),
        ),
        (
            "outside",
            "should not have `../evil`",
            changed(&|name, bytes| {
                if name == "store.db" { same("../evil", bytes) } else { same(name, bytes) }
            }),
        ),
        (
            "no manifest",
            "cut off: it has no manifest",
            changed(&|name, bytes| {
                if name == "manifest.json" { Vec::new() } else { same(name, bytes) }
            }),
        ),
        (
            "newer",
            "newer format",
            changed(&|name, bytes| {
                let newer = |text: String| text.replace("\"format\": 1", "\"format\": 2").into_bytes();
                if name == "manifest.json" {
                    same(name, newer(String::from_utf8(bytes).unwrap()))
                } else {
                    same(name, bytes)
                }
            }),
        ),
    ];
    let listed = rack.done(&["user", "list"]);
    let state = || {
        let mut files: Vec<_> = fs::read_dir(rack.path(".toolrack"))
            .unwrap()
            .map(|entry| entry.unwrap())
            // What SQLite has beside its file while that is open.
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with("toolrack.db-"))
            .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap_or_default()))
            .collect();
        files.sort();
        files
    };
    // What was beside the database is put into it before anything else.
    refused(&rack.run(&["restore", "nowhere.tar.gz", "--replace"]));
    let before = state();
    for (what, says, bytes) in cases {
        fs::write(rack.path("bad.tar.gz"), bytes).unwrap();
        let said = refused(&rack.run(&["restore", "bad.tar.gz", "--replace"]));
        assert!(said.contains("bad.tar.gz: ") && said.contains(says), "{what}: {said}");
        assert!(state() == before, "{what}");
        let said = refused(&rack.run(&["--data-dir", "fresh", "restore", "bad.tar.gz"]));
        assert!(said.contains(says) && !rack.path("fresh").exists(), "{what}: {said}");
    }
    assert_eq!(rack.done(&["user", "list"]), listed);
    assert!(!rack.path("evil").exists());
    assert!(refused(&rack.run(&["restore", "nowhere.tar.gz", "--replace"])).contains("nowhere.tar.gz"));

    // With its key elsewhere.
    rack.done(&["--data-dir", "fresh", "restore", "all.tar.gz"]);
    let key = rack.done(&["audit", "key"]);
    assert_eq!(rack.done(&["--data-dir", "fresh", "audit", "key"]), key);
}
