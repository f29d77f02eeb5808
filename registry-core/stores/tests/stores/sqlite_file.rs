//! What is particular to the store in a file.

use std::{io::Write, time::Duration};

use registry_core::{
    guard::limits::{Charge, Usage},
    store::Store,
};
use sqlx::{Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};
use toolrack_stores::{Durability, SqliteSettings};

use crate::{Place, at, chains::tamper, contract::charge};

#[tokio::test]
async fn l5_the_file_and_its_folder_are_made_and_others_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b/toolrack.db");
    let power = SqliteSettings { durability: Durability::Power, ..SqliteSettings::new(&deep) };
    assert_eq!(power.open().await.unwrap().revision().await, Ok(0));
    assert!(deep.is_file());

    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "This is no database, but a text that is long enough to be taken for one. ".repeat(20),
    )
    .unwrap();
    let cause = SqliteSettings::new(&text).open().await.unwrap_err().to_string();
    assert!(cause.contains("notes.txt") && cause.contains("not a database"), "{cause}");
    let below = SqliteSettings::new(text.join("toolrack.db")).open().await.unwrap_err().to_string();
    assert!(below.contains("notes.txt"), "{below}");
    let cause = SqliteSettings::new(folder.path()).open().await.unwrap_err().to_string();
    assert!(cause.contains(&folder.path().display().to_string()), "{cause}");
}

#[cfg(unix)]
#[tokio::test]
async fn l5_the_file_and_its_folder_are_for_nobody_else_to_read() {
    use registry_core::store::User;
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a/b");
    let store = SqliteSettings::new(place.join("toolrack.db")).open().await.unwrap();
    // So that the files beside it are there.
    let (level, created_at) = (registry_core::Permission::User, at("12:00:00"));
    let user = User { id: "ada".into(), level, personas: Vec::new(), created_at };
    store.put_user("default", user).await.unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(&folder.path().join("a"))), (0o700, 0o700));
    let files: Vec<_> = std::fs::read_dir(&place).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn l5_a_database_of_a_newer_program_is_left_alone() {
    for place in Place::all("l5_a_database_of_a_newer_program_is_left_alone") {
        drop(place.open("main").await);
        tamper(&place, "UPDATE toolrack_schema SET version = 99").await;
        let url = place.url();
        let cause = match &place {
            Place::File(_) => SqliteSettings::new(url).open().await.unwrap_err().to_string(),
            Place::Postgres(_) => {
                toolrack_stores::PostgresSettings::new(url, "main").open().await.unwrap_err().to_string()
            }
        };
        assert!(cause.contains("version 99") && cause.contains("newer program"), "{cause}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn l5_servers_that_start_at_once_lay_out_one_set_of_tables() {
    for place in Place::all("l5_servers_that_start_at_once_lay_out_one_set_of_tables") {
        let opened = (0..8).map(|_| {
            let url = place.url();
            tokio::spawn(async move { crate::open(&url, "main").await })
        });
        for store in opened.collect::<Vec<_>>() {
            assert_eq!(store.await.unwrap().revision().await, Ok(0));
        }
    }
}

#[tokio::test]
async fn t3_a_file_that_somebody_holds_is_a_refusal_and_no_hang() {
    let place = Place::file();
    let settings =
        SqliteSettings { busy_timeout: Duration::from_millis(200), ..SqliteSettings::new(place.url()) };
    let store = settings.open().await.unwrap();
    let mut holder =
        <sqlx::SqliteConnection as sqlx::Connection>::connect(&format!("sqlite:{}", place.url()))
            .await
            .unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holder).await.unwrap();
    let cause = store.charge(&charge(at("12:00:00"), 0, 1)).await.unwrap_err().to_string();
    assert!(cause.contains("locked"), "{cause}");
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    assert_eq!(store.charge(&charge(at("12:00:00"), 0, 1)).await, Ok(None));
}

#[tokio::test]
async fn t3_counts_that_say_nothing_any_more_are_removed() {
    let place = Place::file();
    let store = place.open("main").await;
    let of = |number: u32, at| Charge { user: format!("user {number}"), ..charge(at, 0, 1) };
    let first_day: Vec<Charge> = (0..5000).map(|number| of(number, at("12:00:00"))).collect();
    let next_day: Vec<Charge> =
        (0..5000).map(|number| of(number % 10, at("12:00:00") + Duration::from_secs(86_400))).collect();
    for day in [first_day, next_day] {
        futures_util::future::join_all(day.iter().map(|charge| store.charge(charge))).await;
    }
    // Answered behind the removal.
    store.charge(&of(0, at("12:00:00"))).await.unwrap();
    let mut link = <sqlx::SqliteConnection as sqlx::Connection>::connect(&format!("sqlite:{}", place.url()))
        .await
        .unwrap();
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM call_counts").fetch_one(&mut link).await.unwrap();
    assert_eq!(left, 10);
}

#[tokio::test]
async fn l5_a_new_file_that_another_program_is_just_making_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.db");
    let mut other =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&file).create_if_missing(true))
            .await
            .unwrap();
    other.execute("BEGIN IMMEDIATE; CREATE TABLE theirs (a)").await.unwrap();
    let open = SqliteSettings::new(&file);
    let opened = tokio::spawn(async move { open.open().await.map(drop) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!opened.is_finished());
    other.execute("COMMIT").await.unwrap();
    assert_eq!(opened.await.unwrap(), Ok(()));
}

#[cfg(unix)]
#[tokio::test]
async fn a13_nothing_is_acknowledged_into_a_file_that_was_removed_or_replaced() {
    let place = Place::file();
    let (store, one) = (place.open("main").await, charge(at("12:00:00"), 0, 1000));
    assert_eq!(store.charge(&one).await, Ok(None));
    let aside = format!("{}.aside", place.url());
    std::fs::rename(place.url(), &aside).unwrap();
    for replaced in [false, true] {
        if replaced {
            std::fs::copy(&aside, place.url()).unwrap();
        }
        let cause = store.charge(&one).await.unwrap_err().to_string();
        assert!(cause.contains("removed or replaced") && cause.contains("restart"), "{cause}");
    }
    std::fs::rename(&aside, place.url()).unwrap();
    assert_eq!(store.charge(&one).await, Ok(None));
}

/// A small file system of its own; `None` where nobody may mount one, and the test is skipped.
#[cfg(target_os = "linux")]
struct SmallDisk(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn mount(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(folder.path())
            .output();
        if mount.is_ok_and(|done| done.status.success()) {
            return Some(Self(folder));
        }
        let _ = writeln!(std::io::stderr(), "skipped: {test}, because no file system can be mounted");
        None
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn l5_a_store_whose_disk_is_full_says_so_when_it_is_checked() {
    use registry_core::guard::audit::{AuditRecord, AuditSink};

    let Some(disk) = SmallDisk::mount("l5_a_store_whose_disk_is_full_says_so_when_it_is_checked") else {
        return;
    };
    let store = SqliteSettings::new(disk.0.path().join("toolrack.db")).open().await.unwrap();
    let record = || AuditRecord { tenant: "default".to_owned(), ..AuditRecord::default() };
    store.record(record()).await.unwrap();
    assert_eq!(store.check().await, Ok(()));
    let filling = disk.0.path().join("fill");
    {
        let mut file = std::fs::File::create(&filling).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }
    // There may be room left in its own files.
    let mut refused = 0;
    while refused < 20 {
        if store.record(record()).await.is_err() {
            refused += 1;
            let mut checks = Vec::new();
            for _ in 0..4 {
                checks.push(store.check().await.is_err());
            }
            assert!(checks.contains(&true), "a call is refused and the store says that it is well");
        }
    }
    std::fs::remove_file(filling).unwrap();
    store.record(record()).await.unwrap();
    assert_eq!(store.check().await, Ok(()));
}
