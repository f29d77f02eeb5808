//! The end of the audit, proven by heads that are signed and kept beside the database.

use std::{fs, path::PathBuf};

use reqwest::{Method, StatusCode};

use super::program::{Rack, client, mock};

/// What `audit verify` prints, and whether it finds everything whole.
fn verify(rack: &Rack, arguments: &[&str]) -> (bool, String) {
    let output = rack.run(&[&["audit", "verify"], arguments].concat());
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).unwrap())
}

/// The files of the database, by their names.
type Files = Vec<(PathBuf, Vec<u8>)>;

fn database(rack: &Rack) -> Files {
    let entries = fs::read_dir(rack.path(".toolrack")).unwrap().map(|entry| entry.unwrap().path());
    let is_database = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with("toolrack.db");
    entries.filter(is_database).map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// Puts the database back as it was.
fn restore(rack: &Rack, before: &Files) {
    database(rack).iter().for_each(|(file, _)| fs::remove_file(file).unwrap());
    before.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a20_records_that_were_cut_off_or_replaced_show_against_signed_heads() {
    let rack = Rack::new("", &mock("count.free", ""));
    let client = client();
    let call_once = async || {
        let server = rack.serve();
        assert_eq!(server.call(&client, "", "count.free").await.status(), StatusCode::OK);
        server.end();
    };
    call_once().await;
    let early = database(&rack);
    call_once().await;
    let (is_whole, printed) = verify(&rack, &[]);
    assert!(
        is_whole
            && printed.starts_with("main: 4 records, whole;")
            && printed.contains("; signed up to record 4 on "),
        "{printed}"
    );

    // An administrator of another machine collects the heads, and has the public key.
    let heads = rack.path(".toolrack/audit-heads.jsonl");
    let collected = rack.path("collected.jsonl");
    fs::copy(&heads, &collected).unwrap();
    let key = rack.done(&["audit", "key"]).trim().to_owned();
    fs::remove_file(rack.path(".toolrack/audit-key.pem")).unwrap();
    let elsewhere = ["--heads", "collected.jsonl", "--public-key", &key];
    assert!(verify(&rack, &elsewhere).0);
    let (is_whole, printed) = verify(&rack, &[]);
    assert!(!is_whole && printed.contains("line 1: it is not signed by this server's key"), "{printed}");

    // An older state of the database is whole in itself.
    restore(&rack, &early);
    let (is_whole, printed) = verify(&rack, &elsewhere);
    assert!(
        !is_whole
            && printed
                .contains("2 records are whole, then the records up to 4, which was signed, are missing"),
        "{printed}"
    );
    // And so are records that were written since.
    for _ in 0..2 {
        call_once().await;
    }
    let (is_whole, printed) = verify(&rack, &elsewhere);
    assert!(
        !is_whole && printed.contains("record 4 has another hash than the one that was signed"),
        "{printed}"
    );
    // All of it gone.
    restore(&rack, &Files::new());
    let (is_whole, printed) = verify(&rack, &elsewhere);
    assert!(!is_whole && printed.contains("there are signed heads of the audit, and"), "{printed}");
    rack.done(&["user", "add", "ada"]);
    let (is_whole, printed) = verify(&rack, &elsewhere);
    assert!(
        !is_whole && printed.contains("record 2 has another hash than the one that was signed"),
        "{printed}"
    );

    let (is_whole, printed) =
        verify(&rack, &["--heads", "collected.jsonl", "--tenant", "none", "--public-key", &key]);
    assert!(!is_whole && printed.contains("there is no head of the tenant none"), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a20_the_records_of_all_tenants_are_verified_at_once() {
    let rack = Rack::new("", &mock("count.free", ""));
    let (is_whole, printed) = verify(&rack, &["--all-tenants"]);
    assert!(is_whole && printed.starts_with("There are no records"), "{printed}");
    rack.done(&["user", "add", "ada"]);
    rack.done(&["user", "add", "bea", "--tenant", "acme"]);
    let server = rack.serve();
    assert_eq!(server.call(&client(), "", "count.free").await.status(), StatusCode::OK);
    server.end();
    let (is_whole, printed) = verify(&rack, &["--all-tenants"]);
    let lines: Vec<_> = printed.lines().collect();
    assert!(is_whole && lines.len() == 2, "{printed}");
    assert!(lines[0].starts_with("acme, main: 2 records, whole;"), "{printed}");
    assert!(lines[1].starts_with("default, main: 4 records, whole;"), "{printed}");

    // Those of one of them gone, as all of one database is.
    restore(&rack, &Files::new());
    rack.done(&["user", "add", "ada"]);
    let (is_whole, printed) = verify(&rack, &["--all-tenants"]);
    let is_missing = |line: &str| line.starts_with("acme, main: ") && line.contains("missing");
    assert!(!is_whole && printed.lines().any(is_missing), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a20_a_server_does_not_sign_what_was_rewritten_and_says_so() {
    let rack = Rack::new("", &mock("count.free", ""));
    let client = client();
    let server = rack.serve();
    assert_eq!(server.call(&client, "", "count.free").await.status(), StatusCode::OK);
    server.end();
    let signed = fs::read(rack.path(".toolrack/audit-heads.jsonl")).unwrap();
    restore(&rack, &Files::new());
    let server = rack.serve();
    assert_eq!(server.call(&client, "", "count.free").await.status(), StatusCode::OK);
    let log = server.end();
    assert!(log.contains("audit_was_removed") && log.contains("audit_was_rewritten"), "{log}");
    assert_eq!(fs::read(rack.path(".toolrack/audit-heads.jsonl")).unwrap(), signed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k25_heads_go_where_the_operator_says_and_wait_while_nobody_takes_them() {
    let taken = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (web, mut bodies) = tokio::sync::mpsc::channel(8);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let http = listener.local_addr().unwrap();
    let app = axum::Router::new().route(
        "/heads",
        axum::routing::post(async move |body: String| {
            static ASKED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
            if !ASKED.swap(true, std::sync::atomic::Ordering::Relaxed) {
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            web.send(body).await.unwrap();
            StatusCode::NO_CONTENT
        }),
    );
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });

    let heads = format!(
        "[audit]\nheads_seconds = 1\nheads = [\"file:heads/of-main.jsonl\", \"syslog://{}\", \"http://{http}/heads\"]\n",
        taken.local_addr().unwrap()
    );
    let rack = Rack::new("", &(heads + &mock("count.free", "")));
    let server = rack.serve();
    assert_eq!(server.call(&client(), "", "count.free").await.status(), StatusCode::OK);
    let mut packet = vec![0; 2048];
    let length = taken.recv(&mut packet).await.unwrap();
    let packet = String::from_utf8(packet[..length].to_vec()).unwrap();
    assert!(packet.starts_with("<85>1 - - toolrack "), "{packet}");
    let body = bodies.recv().await.unwrap();
    let log = server.end();
    assert!(log.contains("audit_heads_not_delivered") && log.contains("503"), "{log}");
    // All have heads that can be verified with.
    let line = packet.split_once(" - {").unwrap().1;
    fs::write(rack.path("packets.jsonl"), format!("{{{line}\n")).unwrap();
    fs::write(rack.path("bodies.jsonl"), body).unwrap();
    for file in ["heads/of-main.jsonl", "packets.jsonl", "bodies.jsonl"] {
        let (is_whole, printed) = verify(&rack, &["--heads", file]);
        assert!(is_whole && printed.contains("signed up to record"), "{file}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_another_key_signs_and_what_the_one_before_has_signed_stays_proven() {
    let rack = Rack::new("", &mock("count.free", ""));
    let client = client();
    let refused = rack.run(&["audit", "rotate-key"]);
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("there is no key")
    );
    let server = rack.serve();
    assert_eq!(server.call(&client, "", "count.free").await.status(), StatusCode::OK);
    server.end();
    let first = rack.done(&["audit", "key"]).trim().to_owned();
    let mut keys = vec![first.clone()];
    // Also while a server runs, which signs with it from then on.
    let server = rack.serve();
    keys.push(rack.done(&["audit", "rotate-key"]).trim().to_owned());
    // In the console.
    let console = |method, path: &str| client.request(method, format!("{}/api/audit/{path}", server.base));
    let shown: serde_json::Value = console(Method::GET, "key").send().await.unwrap().json().await.unwrap();
    assert_eq!(shown["public_key"], keys[1]);
    let rotated = console(Method::POST, "rotate-key").send().await.unwrap();
    let rotated: serde_json::Value = rotated.error_for_status().unwrap().json().await.unwrap();
    keys.push(rotated["public_key"].as_str().unwrap().to_owned());
    assert_eq!(rack.done(&["audit", "key"]).trim(), keys[2]);
    assert!(keys[0] != keys[1] && keys[1] != keys[2]);
    let rotated: Vec<serde_json::Value> = rack
        .done(&["audit", "export", "--tool", "toolrack audit rotate-key", "--only", "success"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = |at: usize| serde_json::json!({"before": keys[at], "after": keys[at + 1]});
    assert_eq!(rotated.len(), 2);
    for (at, record) in rotated.iter().enumerate() {
        let origin = ["command_line", "http"][at];
        assert!(record.to_string().contains(&format!("\"origin\":\"{origin}\"")), "{record}");
        assert!(record.to_string().contains(&told(at).to_string().replace(['{', '}'], "")), "{record}");
    }
    assert_eq!(server.call(&client, "", "count.free").await.status(), StatusCode::OK);
    server.end();
    let (is_whole, printed) = verify(&rack, &[]);
    assert!(
        // Two of each call, and two of each rotation.
        is_whole && printed.contains("8 records, whole;") && printed.contains("signed up to record 8"),
        "{printed}"
    );

    // The new key alone has not signed the first head.
    let retired = rack.path(".toolrack/audit-key.pem.retired");
    let lines = fs::read_to_string(&retired).unwrap();
    assert_eq!(lines.lines().count(), 2);
    fs::remove_file(&retired).unwrap();
    let (is_whole, printed) = verify(&rack, &[]);
    assert!(!is_whole && printed.contains("it is not signed by this server's key"), "{printed}");
    assert!(verify(&rack, &["--public-key", &first, "--public-key", &keys[1]]).0);
    // Nobody becomes the one before by saying so, or signs for longer.
    let forged = [
        lines.replace(&first, &keys[1]),
        lines.replace("\"retired_at\":\"2", "\"retired_at\":\"3"),
        lines.lines().skip(1).collect::<Vec<_>>().join("\n"),
    ];
    for lines in forged {
        fs::write(&retired, lines).unwrap();
        assert!(!verify(&rack, &[]).0);
    }
    fs::write(&retired, &lines).unwrap();
    assert!(verify(&rack, &[]).0);
}
