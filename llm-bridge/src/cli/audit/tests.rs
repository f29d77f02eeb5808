use std::{fs, process::ExitCode, sync::Arc};

use registry_core::guard::audit::{
    AuditRecord, AuditSink, Phase,
    log::{AuditFilter, AuditLog, NotedHeads},
};
use tokio_util::sync::CancellationToken;
use toolrack_stores::SqliteSettings;

use super::{
    Verifier,
    head::{HeadStatement, noted, read_file, read_line},
    key::{PublicKey, SigningKey},
    sending::{Destination, Place},
    signer::HeadSigner,
};
use crate::{
    cli::Settings,
    server::{AuditFault, GivenHeads, VerifyAudit},
};

fn statement(seq: u64) -> HeadStatement {
    HeadStatement {
        tenant: "default".to_owned(),
        server: "main".to_owned(),
        seq,
        sha256: format!("{seq:064x}"),
        ts: "2026-11-24T12:00:00Z".parse().unwrap(),
        removed: false,
    }
}

#[test]
fn a20_a_head_is_read_only_where_its_own_key_has_signed_it() {
    let folder = tempfile::tempdir().unwrap();
    let key = SigningKey::open(&folder.path().join("key.pem")).unwrap();
    let again = SigningKey::open(&folder.path().join("key.pem")).unwrap();
    assert_eq!(key.public().to_string(), again.public().to_string());
    let line = statement(7).signed(&key);
    let keys = [PublicKey::parse(&key.public().to_string()).unwrap()];
    assert_eq!(read_line(&line, &keys).unwrap(), statement(7));

    let other = SigningKey::open(&folder.path().join("other.pem")).unwrap();
    let changed = [
        line.replace("\"seq\":7", "\"seq\":6"),
        line.replace("main", "spare"),
        line.replace("\"signature\"", "\"removed\":true,\"signature\""),
        statement(7).signed(&other),
        line.replace("{", "["),
    ];
    for changed in changed {
        assert_ne!(changed, line);
        read_line(&changed, &keys).unwrap_err();
    }
    let file = folder.path().join("heads.jsonl");
    fs::write(&file, format!("{line}\n{}\n", statement(9).signed(&key))).unwrap();
    let heads = read_file(&file, &keys).unwrap();
    assert_eq!(noted(&heads, "default")["main"].keys().collect::<Vec<_>>(), [&7, &9]);
    assert!(noted(&heads, "other").is_empty());
    let fault = read_file(&file, &[other.public()]).unwrap_err();
    assert!(fault.contains("heads.jsonl, line 1: it is not signed by this server's key"), "{fault}");
}

#[tokio::test]
async fn a20_a_head_that_was_cut_off_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heads.jsonl");
    let key = SigningKey::open(&folder.path().join("key.pem")).unwrap();
    let keys = [key.public()];
    let [first, second, third] = [7, 8, 9].map(|seq| statement(seq).signed(&key));
    let half = &second[..second.len() / 2];
    let seqs = |keys| read_file(&file, keys).unwrap().iter().map(|head| head.seq).collect::<Vec<_>>();
    // As a disk that is full leaves it.
    fs::write(&file, format!("{first}\n{half}")).unwrap();
    assert_eq!(seqs(&keys), [7]);
    let mut destination = Destination::new(Place::File(file.clone())).unwrap();
    destination.put("default", &third);
    destination.deliver().await;
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{first}\n{half}\n{third}\n"));
    assert_eq!(seqs(&keys), [7, 9]);
    // What is whole and not signed is still told with its line.
    let other = SigningKey::open(&folder.path().join("other.pem")).unwrap();
    fs::write(&file, format!("{first}\n{half}{half}\n{}\n", statement(9).signed(&other))).unwrap();
    let fault = read_file(&file, &keys).unwrap_err();
    assert!(fault.contains("heads.jsonl, line 3: it is not signed"), "{fault}");
    // Another file.
    fs::write(&file, "one\ntwo\n").unwrap();
    let fault = read_file(&file, &keys).unwrap_err();
    assert!(fault.contains("heads.jsonl, line 1: this is no signed head"), "{fault}");
}

#[tokio::test]
async fn k25_a_grown_audit_is_removed_some_at_a_time_without_a_pause() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("data_dir = {:?}\n[audit]\nretention_days = 30\n", folder.path());
    let settings = Settings::from_toml(&text, &[]).unwrap();
    let store = Arc::new(SqliteSettings::new(folder.path().join("toolrack.db")).open().await.unwrap());
    let old = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 40);
    let record = || AuditRecord { tenant: "default".to_owned(), ts: old, ..AuditRecord::default() };
    let records = (0..5002).map(|_| store.record(record()));
    for recorded in futures_util::future::join_all(records).await {
        recorded.unwrap();
    }
    let stop = CancellationToken::new();
    let signer = HeadSigner::open(&settings, store.clone(), store.clone()).await.unwrap().unwrap();
    let signing = tokio::spawn(signer.run(stop.clone()));
    let reported = async || store.verify("default", &NotedHeads::new()).await.unwrap().remove(0);
    tokio::time::timeout(std::time::Duration::from_secs(60), async {
        // Of each time what was done is recorded.
        while reported().await.records != 4 {}
    })
    .await
    .unwrap();
    stop.cancel();
    signing.await.unwrap();
    assert_eq!(reported().await.fault, None);
}

#[test]
fn a20_a_file_that_is_no_key_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.pem");
    fs::write(&file, "hello").unwrap();
    let fault = SigningKey::open(&file).err().unwrap();
    assert!(fault.contains("key.pem: this is no Ed25519 key; make one with `openssl"), "{fault}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "hello");
    // As OpenSSL writes one (RFC 8410, 10.3).
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    fs::write(&file, pem).unwrap();
    let public = SigningKey::open(&file).unwrap().public();
    // The public key of its section 10.1.
    assert_eq!(public.to_string(), "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=");
    #[cfg(unix)]
    {
        let made = folder.path().join("made.pem");
        SigningKey::open(&made).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(made).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a20_places_of_heads_are_read() {
    let stores = ["sqlite:heads.db", "postgres://toolrack:hush@logs.example/heads"];
    for text in stores.into_iter().chain([
        "file:heads.jsonl",
        "syslog",
        "syslog://logs.example:514",
        "https://logs.example/heads",
    ]) {
        Place::parse(text).unwrap();
    }
    for text in
        ["", "file:", "heads.jsonl", "syslog://logs.example", "ftp://logs.example/", "https://", "sqlite:"]
    {
        let fault = Place::parse(text).unwrap_err();
        assert!(fault.contains("is none of `file:PATH`"), "{text}: {fault}");
    }
    assert_eq!(Place::parse("https://logs.example/heads?key=secret").unwrap().to_string(), "logs.example");
    assert!(!format!("{0:?} {0}", Place::parse(stores[1]).unwrap()).contains("hush"));
}

#[tokio::test]
async fn k25_records_that_are_too_old_are_removed_and_the_audit_proves_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("data_dir = {:?}\n[audit]\nretention_days = 30\n", folder.path());
    let settings = Settings::from_toml(&text, &[]).unwrap();
    let store = Arc::new(SqliteSettings::new(folder.path().join("toolrack.db")).open().await.unwrap());
    let record = |tool: &str, ts: jiff::Timestamp| AuditRecord {
        phase: Phase::Outcome,
        tool: tool.to_owned(),
        tenant: "default".to_owned(),
        success: Some(true),
        ts,
        ..AuditRecord::default()
    };
    let now = jiff::Timestamp::now();
    for days in [90, 60, 31, 29, 0] {
        let ts = now - jiff::SignedDuration::from_hours(24 * days);
        store.record(record(&format!("days.{days}"), ts)).await.unwrap();
    }
    let stop = CancellationToken::new();
    let signer = HeadSigner::open(&settings, store.clone(), store.clone()).await.unwrap().unwrap();
    let signing = tokio::spawn(signer.run(stop.clone()));
    let kept = async || {
        let records = store.list(&AuditFilter::new("default")).await.unwrap();
        let tool = |record: &str| serde_json::from_str::<serde_json::Value>(record).unwrap()["tool"].take();
        records
            .iter()
            .map(|record| tool(record.record.get()).as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    while kept().await.len() != 4 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    stop.cancel();
    signing.await.unwrap();
    assert_eq!(kept().await, ["days.29", "days.0", "audit retention", "audit retention"]);

    let verified = async || {
        let arguments = <super::Arguments as clap::FromArgMatches>::from_arg_matches(
            &<super::Arguments as clap::Args>::augment_args(clap::Command::new("audit"))
                .get_matches_from(["audit", "verify"]),
        );
        super::run(arguments.unwrap(), store.as_ref(), &settings, "here").await.unwrap() == ExitCode::SUCCESS
    };
    assert!(verified().await);
    let start = store.verify("default", &NotedHeads::new()).await.unwrap().remove(0).start.unwrap();
    let key = SigningKey::open(&settings.audit.key_file(folder.path())).unwrap();
    let proof = read_line(&start.proof, &[key.public()]).unwrap();
    assert_eq!((proof.seq, proof.removed, proof.head()), (3, true, start.after.clone()));
    // Whoever removes more and has no key has no proof.
    let more = store.last_before("default", now).await.unwrap().unwrap();
    store
        .remove(
            "default",
            &more,
            &statement(4).signed(&SigningKey::open(&folder.path().join("mine.pem")).unwrap()),
        )
        .await
        .unwrap();
    assert!(!verified().await);
}

#[tokio::test]
async fn k25_records_are_verified_against_heads_in_another_database() {
    let folder = tempfile::tempdir().unwrap();
    let heads = folder.path().join("elsewhere/heads.db");
    let text = format!("data_dir = {:?}\n[audit]\nheads = [\"sqlite:{}\"]\n", folder.path(), heads.display());
    let settings = Settings::from_toml(&text, &[]).unwrap();
    let store = async |name: &str, records: usize| {
        let store = Arc::new(SqliteSettings::new(folder.path().join(name)).open().await.unwrap());
        for _ in 0..records {
            let tool = if records > 3 { "other" } else { "same" }.to_owned();
            let record = AuditRecord { tenant: "default".to_owned(), tool, ..AuditRecord::default() };
            store.record(record).await.unwrap();
        }
        store
    };
    let signed = store("toolrack.db", 3).await;
    let stop = CancellationToken::new();
    let signer = HeadSigner::open(&settings, signed.clone(), signed.clone()).await.unwrap().unwrap();
    // It signs a last time when it stops.
    stop.cancel();
    signer.run(stop).await;
    let verified = async |log: &dyn AuditLog, arguments: &[&str]| {
        let arguments = <super::Arguments as clap::FromArgMatches>::from_arg_matches(
            &<super::Arguments as clap::Args>::augment_args(clap::Command::new("audit"))
                .get_matches_from(["audit", "verify"].iter().chain(arguments)),
        );
        super::run(arguments.unwrap(), log, &settings, "here").await.map(|code| code == ExitCode::SUCCESS)
    };
    let named = format!("--heads=sqlite:{}", heads.display());
    assert!(verified(signed.as_ref(), &[]).await.unwrap());
    assert!(verified(signed.as_ref(), &[&named]).await.unwrap());
    // Cut off, and written anew.
    for records in [2, 4] {
        let other = store(&format!("{records}.db"), records).await;
        assert!(!verified(other.as_ref(), &[]).await.unwrap(), "{records}");
        assert!(!verified(other.as_ref(), &[&named]).await.unwrap(), "{records}");
    }
    // A server that is started again knows what it has signed.
    let again = store("4.db", 0).await;
    let signer = HeadSigner::open(&settings, again.clone(), again).await.unwrap().unwrap();
    let (stop, before) = (CancellationToken::new(), fs::read(&heads).unwrap());
    stop.cancel();
    signer.run(stop).await;
    assert_eq!(fs::read(&heads).unwrap(), before);
}

#[tokio::test]
async fn u29_the_audit_is_verified_with_heads_that_were_collected_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::from_toml(&format!("data_dir = {:?}\n", folder.path()), &[]).unwrap();
    let store = Arc::new(SqliteSettings::new(folder.path().join("toolrack.db")).open().await.unwrap());
    let tenant = "default".to_owned();
    store.record(AuditRecord { tool: "a".to_owned(), tenant, ..AuditRecord::default() }).await.unwrap();
    let head = store.heads().await.unwrap().remove("default").unwrap();
    let server = store.list(&AuditFilter::new("default")).await.unwrap().remove(0).server;
    let key = SigningKey::open(&folder.path().join("other.pem")).unwrap();
    let line = |sha256: &str, key: &SigningKey| {
        let (server, sha256) = (server.clone(), sha256.to_owned());
        HeadStatement { server, sha256, seq: head.seq, ..statement(1) }.signed(key)
    };
    let verifier = Verifier::new(store, &settings).unwrap();
    let verify = async |heads: String, public_keys: Vec<String>| {
        verifier.verify("default", Some(GivenHeads { heads, public_keys })).await
    };
    let public = vec![key.public().to_string()];
    let verdict = verify(line(&head.sha256, &key), public.clone()).await.unwrap();
    assert!(verdict.whole && verdict.chains[0].found.contains("signed up to record"), "{verdict:?}");
    let rewritten = verify(line(&"0".repeat(64), &key), public.clone()).await.unwrap();
    assert!(!rewritten.whole && rewritten.chains[0].found.contains("has another hash"), "{rewritten:?}");
    let unsigned = verify(line(&head.sha256, &key), Vec::new()).await.unwrap();
    assert!(!unsigned.whole && unsigned.faults[0].starts_with("line 1: it is not signed"), "{unsigned:?}");
    let of_other = HeadStatement { tenant: "other".to_owned(), ..statement(1) }.signed(&key);
    for (heads, keys, fault) in [
        (line(&head.sha256, &key), vec!["no key".to_owned()], "this is no public key"),
        (of_other, public, "there is no head of the tenant default"),
    ] {
        let Err(AuditFault::Given(said)) = verify(heads, keys).await else { panic!("{fault}") };
        assert!(said.contains(fault), "{said}");
    }
}

#[tokio::test]
async fn k25_records_of_servers_that_are_gone_become_too_old_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("data_dir = {:?}\n[audit]\nretention_days = 30\n", folder.path());
    let settings = Settings::from_toml(&text, &[]).unwrap();
    let open = async |server: &str| {
        let file = folder.path().join("toolrack.db");
        let place = SqliteSettings { server: server.to_owned(), ..SqliteSettings::new(file) };
        Arc::new(place.open().await.unwrap())
    };
    let now = jiff::Timestamp::now();
    for (server, days) in [("gone", [90, 60, 31]), ("idle", [90, 60, 1])] {
        let store = open(server).await;
        for days in days {
            let ts = now - jiff::SignedDuration::from_hours(24 * days);
            let record = AuditRecord { tenant: "default".to_owned(), ts, ..AuditRecord::default() };
            store.record(record).await.unwrap();
        }
    }
    let store = open("main").await;
    let stop = CancellationToken::new();
    let signer = HeadSigner::open(&settings, store.clone(), store.clone()).await.unwrap().unwrap();
    let signing = tokio::spawn(signer.run(stop.clone()));
    let reports = async || store.verify("default", &NotedHeads::new()).await.unwrap();
    let gone = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        loop {
            let report = reports().await.into_iter().find(|report| report.server == "gone").unwrap();
            if report.start.is_some() {
                return report;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    let gone = gone.await.unwrap();
    stop.cancel();
    signing.await.unwrap();
    // The last record stays: were its server back, the chain would go on.
    assert_eq!((gone.records, gone.fault), (1, None));
    let key = SigningKey::open(&settings.audit.key_file(folder.path())).unwrap();
    let proof = read_line(&gone.start.unwrap().proof, &[key.public()]).unwrap();
    assert_eq!((&*proof.server, proof.seq, proof.removed), ("gone", 2, true));
    let others = reports().await.into_iter().map(|report| (report.server, report.records));
    // What was done is recorded, as an intent and an outcome.
    let expected = [("gone", 1), ("idle", 3), ("main", 2)];
    assert_eq!(others.collect::<Vec<_>>(), expected.map(|(server, records)| (server.to_owned(), records)));
    open("gone")
        .await
        .record(AuditRecord { tenant: "default".to_owned(), ..AuditRecord::default() })
        .await
        .unwrap();
    assert!(reports().await.into_iter().all(|report| report.fault.is_none()));
}
