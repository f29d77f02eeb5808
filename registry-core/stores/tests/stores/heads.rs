//! Signed heads in a database of their own.

use toolrack_stores::{HeadStore, KeptHead};

use crate::Place;

fn head(tenant: &str, seq: u64, line: &str) -> KeptHead {
    KeptHead {
        tenant: tenant.to_owned(),
        server: "main".to_owned(),
        seq,
        removed: false,
        line: line.to_owned(),
    }
}

#[tokio::test]
async fn k25_signed_heads_are_added_to_a_database_and_none_is_rewritten() {
    for place in Place::all("k25_signed_heads_are_added_to_a_database_and_none_is_rewritten") {
        let address = match &place {
            Place::File(_) => format!("sqlite:{}", place.url()),
            Place::Postgres(url) => url.clone(),
        };
        let heads = HeadStore::parse(&address).unwrap();
        assert!(heads.lines(9).await.unwrap().is_empty());
        heads.add(&[head("acme", 5, "a5"), head("default", 7, "d7")]).await.unwrap();
        // What comes again, and what somebody would like to have been signed.
        heads.add(&[head("default", 7, "other"), head("default", 12, "d12")]).await.unwrap();
        let removed = KeptHead { removed: true, ..head("acme", 5, "removed up to a5") };
        heads.add(&[removed]).await.unwrap();
        let mut lines = heads.lines(9).await.unwrap();
        lines[..2].sort();
        assert_eq!(lines, ["a5", "removed up to a5", "d7", "d12"]);
        let last = heads.lines(1).await.unwrap();
        assert_eq!((last.len(), last[1].as_str()), (2, "d12"));
    }
    for no_address in ["", "heads.db", "sqlite:", "mysql://a/b"] {
        assert_eq!(HeadStore::parse(no_address), None, "{no_address}");
    }
}

#[tokio::test]
async fn k25_a_database_of_heads_that_is_away_is_named_without_its_password() {
    let port = crate::servers::free_port();
    let heads = HeadStore::parse(&format!("postgres://toolrack:hush@127.0.0.1:{port}/heads")).unwrap();
    let cause = heads.add(&[head("default", 1, "d1")]).await.unwrap_err().to_string();
    assert!(cause.contains(&format!("127.0.0.1:{port}/heads")) && !cause.contains("hush"), "{cause}");
}
