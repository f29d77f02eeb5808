//! A backup that is uploaded to a running server, on both stores, and put in place at its next start: requirement B21, row U29.

use std::{fs, io::Write, net::TcpStream};

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::{
    program::{Rack, Serving, client, within_a_second},
    servers::postgres,
};

/// An operator's requests.
struct Operator {
    base: String,
    key: String,
}

impl Operator {
    fn of(server: &Serving, key: &str) -> Self {
        Self { base: server.base.clone(), key: key.to_owned() }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        client().request(method, format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    async fn backup(&self) -> Vec<u8> {
        let sent = self.request(Method::POST, "/api/backup").send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::OK);
        sent.bytes().await.unwrap().to_vec()
    }

    async fn upload(&self, backup: &[u8]) -> Response {
        let request = self.request(Method::POST, "/api/restore").header("content-type", "application/gzip");
        request.body(backup.to_vec()).send().await.unwrap()
    }

    async fn waiting(&self) -> Value {
        let answer = self.request(Method::GET, "/api/restore").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        answer.json::<Value>().await.unwrap()["uploaded"].take()
    }

    async fn delete_uploaded(&self) -> StatusCode {
        self.request(Method::DELETE, "/api/restore").send().await.unwrap().status()
    }
}

/// The error of an answer: its status, its type and its text.
async fn refused(answer: Response) -> (StatusCode, String, String) {
    let status = answer.status();
    let error = answer.json::<Value>().await.unwrap()["error"].take();
    (status, error["type"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
}

/// What lies in the data folder under names of our own.
fn ours(rack: &Rack) -> Vec<String> {
    let names = fs::read_dir(rack.path(".toolrack")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let begins = [".restore-", ".restoring-"];
    let mut ours: Vec<String> =
        names.filter(|name| begins.iter().any(|begin| name.starts_with(begin))).collect();
    ours.sort();
    ours
}

/// A rack with an operator and the key of that one.
fn rack_of(store: &str) -> (Rack, String) {
    let rack = Rack::new(store, "");
    rack.done(&["user", "add", "ada", "--level", "owner"]);
    let (_, key) = rack.key("ada", &[]);
    (rack, key)
}

/// A backup without anything in it whose store comes from a database of this kind.
fn backup_of(tables: &Value) -> Vec<u8> {
    let manifest = json!({"format": 1, "toolrack": "0.1.0", "made_at": "2026-03-01T12:00:00Z", "server": "main", "public_key": null,
        "tables": tables, "files": {}})
    .to_string();
    let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(packed);
    let mut header = tar::Header::new_gnu();
    header.set_size(manifest.len() as u64);
    builder.append_data(&mut header, "manifest.json", manifest.as_bytes()).unwrap();
    builder.into_inner().unwrap().finish().unwrap()
}

async fn is_put_in_place(store: &str) {
    let (rack, key) = rack_of(store);
    rack.done(&["user", "add", "bob"]);
    rack.done(&["user", "add", "eve", "--level", "owner", "--tenant", "acme"]);
    rack.done(&["user", "add", "amy", "--level", "admin"]);
    let (_, of_bob) = rack.key("bob", &[]);
    let (_, of_amy) = rack.key("amy", &[]);
    let of_eve = rack.done(&["key", "create", "eve", "--tenant", "acme"]).trim().to_owned();
    fs::create_dir_all(rack.path(".toolrack/files")).unwrap();
    fs::write(rack.path(".toolrack/files/plan.md"), "the plan").unwrap();
    let mut server = rack.serve();
    let ada = Operator::of(&server, &key);
    let backup = ada.backup().await;
    rack.done(&["user", "add", "later"]);
    fs::write(rack.path(".toolrack/files/later.md"), "later").unwrap();

    for key in [&of_bob, &of_eve] {
        let other = Operator::of(&server, key);
        assert_eq!(refused(other.upload(&backup).await).await.0, StatusCode::FORBIDDEN);
        let read = other.request(Method::GET, "/api/restore").send().await.unwrap();
        assert_eq!(
            (read.status(), other.delete_uploaded().await),
            (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN)
        );
    }
    // It would say who is an owner.
    let amy = Operator::of(&server, &of_amy);
    assert_eq!(refused(amy.upload(&backup).await).await.0, StatusCode::FORBIDDEN);
    assert_eq!((amy.waiting().await, amy.delete_uploaded().await), (Value::Null, StatusCode::FORBIDDEN));
    let form = ada.request(Method::POST, "/api/restore").body(backup.clone()).send().await.unwrap();
    assert_eq!(form.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let mut flipped = backup.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    let tables = if store.is_empty() { json!({"store": 1}) } else { json!({}) };
    let other_kind = backup_of(&tables);
    let says = if store.is_empty() {
        "the store of the backup is from PostgreSQL"
    } else {
        "the backup has no store"
    };
    for (what, says, bytes) in [
        ("nothing", "damaged", &[][..]),
        ("no archive", "damaged", &b"no archive"[..]),
        ("cut", "damaged", &backup[..backup.len() - 9]),
        ("flipped", "", &flipped[..]),
        ("another kind", says, &other_kind[..]),
    ] {
        let (status, kind, message) = refused(ada.upload(bytes).await).await;
        assert_eq!((status, kind.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "backup_refused"), "{what}");
        assert!(message.contains(says) && !message.contains(".restore-"), "{what}: {message}");
    }
    // One whose client goes away in the middle.
    let mut stream = TcpStream::connect(server.base.trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST /api/restore HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/gzip\r\n\
         content-length: {}\r\n\r\n",
        backup.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&backup[..1000]).unwrap();
    within_a_second("it is not taken in", || async { !ours(&rack).is_empty() }).await;
    let busy = refused(ada.upload(&backup).await).await;
    assert_eq!((busy.0, busy.1.as_str()), (StatusCode::CONFLICT, "restore_busy"));
    drop(stream);
    within_a_second("what was cut off stays", || async { ours(&rack).is_empty() }).await;
    assert_eq!((ada.waiting().await, ada.delete_uploaded().await), (Value::Null, StatusCode::NOT_FOUND));

    let uploaded: Value = ada.upload(&backup).await.json().await.unwrap();
    assert_eq!(ada.waiting().await, uploaded);
    let (by, parts) = (&uploaded["by"], &uploaded["parts"]);
    assert_eq!((by, parts, &uploaded["waits"]), (&json!("ada"), &json!(["store", "files"]), &json!(true)));
    assert_eq!((&uploaded["bytes"], &uploaded["error"]), (&json!(backup.len()), &Value::Null));
    let again = refused(ada.upload(&backup).await).await;
    assert_eq!((again.0, again.1.as_str()), (StatusCode::CONFLICT, "restore_waits"));
    let next = ada.backup().await;
    let mut next = tar::Archive::new(flate2::read::GzDecoder::new(&*next));
    let names = next.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string());
    let names: Vec<String> = names.collect();
    assert!(names.len() > 2 && !names.iter().any(|name| name.contains("restore-")), "{names:?}");
    assert_eq!((ada.delete_uploaded().await, ada.waiting().await), (StatusCode::NO_CONTENT, Value::Null));
    assert!(ours(&rack).is_empty());
    assert_eq!(ada.upload(&backup).await.status(), StatusCode::OK);
    assert!(rack.done(&["user", "list"]).contains("later"), "nothing is in place yet");
    let records = rack.export(&[]);
    let outcomes = |tool: &str| {
        let of_tool = records.iter().filter(|record| record["tool"] == tool && record["phase"] == "outcome");
        let of_ada = of_tool.filter(|record| record["user"] == "ada");
        of_ada.map(|record| record["success"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    let tried = [false, false, false, false, false, false, true, false, true];
    assert_eq!((&outcomes("restore upload")[..], &outcomes("restore delete")[..]), (&tried[..], &[true][..]));

    server.kill();
    let server = rack.serve();
    let ada = Operator::of(&server, &key);
    assert_eq!(ada.waiting().await, Value::Null);
    assert!(ours(&rack).is_empty(), "{:?}", ours(&rack));
    let log = server.end();
    assert!(log.contains("Restored the backup that ada uploaded, which was made on"), "{log}");
    let users = rack.done(&["user", "list"]);
    assert!(users.contains("bob") && !users.contains("later"), "{users}");
    assert_eq!(fs::read_to_string(rack.path(".toolrack/files/plan.md")).unwrap(), "the plan");
    assert!(!rack.path(".toolrack/files/later.md").exists());
    let aside = fs::read_dir(rack.path(".toolrack")).unwrap().map(|entry| entry.unwrap().path());
    let aside = aside.filter(|path| path.to_string_lossy().contains("before-restore-")).last().unwrap();
    assert!(log.contains(&format!("what was there before is in {}", aside.display())), "{log}");
    assert_eq!(fs::read_to_string(aside.join("files/later.md")).unwrap(), "later");
    let records = rack.export(&["--only", "success"]);
    let restored = records.iter().find(|record| record["tool"] == "toolrack restore").unwrap();
    let arguments = &restored["arguments"];
    assert_eq!(arguments["uploaded_by"], "ada", "{restored}");
    assert_eq!(arguments["made_at"], uploaded["made_at"], "{restored}");
    // It is done once.
    assert!(!rack.serve().end().contains("Restored the backup"));
    assert!(rack.done(&["audit", "verify"]).contains("whole"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_u29_a_backup_that_is_uploaded_is_put_in_place_at_the_next_start() {
    is_put_in_place("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_u29_a_backup_that_is_uploaded_is_put_in_place_of_postgresql() {
    let test = "b21_u29_a_backup_that_is_uploaded_is_put_in_place_of_postgresql";
    let Some(url) = postgres(test) else { return };
    is_put_in_place(&format!("url = \"{url}\"")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_u29_a_backup_that_cannot_be_put_in_place_is_kept_and_told() {
    let (rack, key) = rack_of("");
    let server = rack.serve();
    let ada = Operator::of(&server, &key);
    let backup = ada.backup().await;
    rack.done(&["user", "add", "later"]);
    assert_eq!(ada.upload(&backup).await.status(), StatusCode::OK);

    // While another server uses the data, it waits.
    let second = rack.serve();
    let waits = Operator::of(&second, &key).waiting().await;
    assert!(waits["error"].as_str().unwrap().contains("a server uses"), "{waits}");
    assert_eq!(waits["waits"], true);
    let log = second.end();
    assert!(log.contains("backup_not_restored") && log.contains("waits for the next start"), "{log}");
    server.end();

    // Damaged on the disk, it is kept under another name, and the server starts with the data that is there.
    fs::write(rack.path(".toolrack/.restore-next.tar.gz"), &backup[..1000]).unwrap();
    let server = rack.serve();
    let ada = Operator::of(&server, &key);
    let failed = ada.waiting().await;
    assert!(failed["error"].as_str().unwrap().contains("damaged"), "{failed}");
    assert_eq!((&failed["waits"], &failed["by"]), (&json!(false), &json!("ada")));
    assert_eq!(ours(&rack), [".restore-failed.json", ".restore-failed.tar.gz"]);
    let log = server.log();
    assert!(log.contains("backup_not_restored") && log.contains(".restore-failed.tar.gz"), "{log}");
    assert!(rack.done(&["user", "list"]).contains("later"));
    // It does not stand in the way of the next one.
    assert_eq!(ada.upload(&backup).await.status(), StatusCode::OK);
    assert_eq!((&ada.waiting().await["waits"], ours(&rack).len()), (&json!(true), 2));
    server.end();

    // Who restores by the command does not have the other in its place at the next start.
    fs::write(rack.path("mine.tar.gz"), &backup).unwrap();
    let said = rack.run(&["restore", "mine.tar.gz", "--replace"]).stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("the backup that was uploaded for the next start is discarded"), "{said}");
    assert!(ours(&rack).is_empty() && !rack.done(&["user", "list"]).contains("later"));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_u29_a_program_that_takes_over_puts_nothing_in_place() {
    let (rack, key) = rack_of("");
    let server = rack.dev();
    let ada = Operator::of(&server, &key);
    let backup = ada.backup().await;
    rack.done(&["user", "add", "later"]);
    assert_eq!(ada.upload(&backup).await.status(), StatusCode::OK);
    rack.write("", &super::program::mock("reloaded", ""));
    let began = std::time::Instant::now();
    while server.call(&client(), &key, "reloaded").await.status() != StatusCode::OK {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{}", server.log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(ada.waiting().await["error"], Value::Null);
    let log = server.end();
    assert!(!log.contains("backup_not_restored") && !log.contains("Restored the backup"), "{log}");
    assert!(rack.done(&["user", "list"]).contains("later"));
    assert!(rack.dev().end().contains("Restored the backup that ada uploaded"));
    assert!(!rack.done(&["user", "list"]).contains("later"));
}
