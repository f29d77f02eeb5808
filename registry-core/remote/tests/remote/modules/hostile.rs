//! What a hostile or broken module may try.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use registry_core::{ToolPolicy, ToolResult, ToolSpec, handler_fn};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use toolrack_remote::module::{MAX_MANIFEST, MAX_REPLY, ModuleSettings, ModulesSettings};

use super::{
    Server, ada,
    peer::{Answer, Peer, manifest, tool},
    quick, until,
};

/// Sends a gigabyte, and counts what was taken.
fn gigabyte(chunked: bool) -> (Answer, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let answer = Answer::talk(move |mut stream| {
        let counted = Arc::clone(&counted);
        async move {
            let head: &[u8] = if chunked { b"transfer-encoding: chunked\r\n\r\n" } else { b"\r\n" };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
            let _ = stream.write_all(head).await;
            let piece = vec![b' '; 1 << 16];
            for _ in 0..(1 << 14) {
                if chunked && stream.write_all(b"10000\r\n").await.is_err() {
                    return;
                }
                if stream.write_all(&piece).await.is_err() {
                    return;
                }
                if chunked && stream.write_all(b"\r\n").await.is_err() {
                    return;
                }
                counted.fetch_add(piece.len() as u64, Ordering::SeqCst);
            }
        }
    });
    (answer, sent)
}

/// Sends a byte every now and then, for ever.
fn drip() -> Answer {
    Answer::talk(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n").await;
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

#[tokio::test]
async fn m1_a_manifest_of_a_gigabyte_is_cut_off() {
    for chunked in [true, false] {
        let (answer, sent) = gigabyte(chunked);
        let peer = Peer::with(answer, Answer::json(&json!({}))).await;
        let server = Server::with("m", &peer.url).await;
        let error = server.modules.reports().remove(0).source.error.unwrap();
        assert_eq!(error, format!("the answer is larger than {MAX_MANIFEST} bytes"));
        // The rest is what the system holds between the two.
        assert!(sent.load(Ordering::SeqCst) < 32 << 20, "{}", sent.load(Ordering::SeqCst));
    }
    let announced = Answer::talk(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    let peer = Peer::with(announced, Answer::json(&json!({}))).await;
    let server = Server::with("m", &peer.url).await;
    assert!(server.modules.reports()[0].source.error.as_ref().unwrap().contains("larger than"));
}

#[tokio::test]
async fn m1_a_manifest_that_unpacks_without_end_is_cut_off() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![b' '; 64 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    let peer = Peer::with(
        Answer::talk(move |mut stream| {
            let packed = packed.clone();
            async move {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
                    packed.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&packed).await;
            }
        }),
        Answer::json(&json!({})),
    )
    .await;
    let server = Server::with("m", &peer.url).await;
    assert!(server.modules.reports()[0].source.error.as_ref().unwrap().contains("larger than"));
}

#[tokio::test]
async fn m8_a_reply_without_end_is_cut_off() {
    let (answer, sent) = gigabyte(true);
    let peer = Peer::with(Answer::json(&manifest("m", &[tool("f", "guest")])), answer).await;
    let settings = ModulesSettings {
        module_timeout: Duration::from_secs(20),
        ..quick(&[("m", ModuleSettings::new(&peer.url))])
    };
    let server = Server::new(settings);
    server.modules.ready().await;
    let error = server.error("m.f").await;
    assert_eq!(error.message(), format!("Tool execution error: the answer is larger than {MAX_REPLY} bytes"));
    assert!(!error.is_retryable());
    assert!(sent.load(Ordering::SeqCst) < 32 << 20);
    // An error without end is shown with its beginning.
    peer.set_execute(Answer::Http(500, "", "x".repeat(1 << 20)));
    let message = server.error("m.f").await.message().to_owned();
    assert!(
        message.starts_with("Module returned status 500: xxx") && message.len() < 5000,
        "{}",
        message.len()
    );
}

#[tokio::test]
async fn m1_a_slow_drip_ends_with_the_timeout() {
    let peer = Peer::with(drip(), drip()).await;
    let began = Instant::now();
    let server = Server::with("m", &peer.url).await;
    assert_eq!(server.modules.reports()[0].source.error.as_deref(), Some("it took longer than 0.5 s"));
    assert!(began.elapsed() < Duration::from_secs(10));
    peer.set_tools("m", &[tool("f", "guest")]);
    server.modules.refresh().await;
    assert_eq!(server.error("m.f").await.message(), "Tool execution timed out (0.5s).");
    // In the headers as well.
    peer.set_execute(Answer::talk(|mut stream| async move {
        while stream.write_all(b"H").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }));
    let error = server.error("m.f").await;
    assert!(error.is_retryable() && began.elapsed() < Duration::from_secs(20), "{error}");
}

#[tokio::test]
async fn m8_a_redirect_leads_nowhere() {
    let target = Peer::new("m", &[tool("stolen", "guest")]).await;
    let redirect: &'static str = format!("location: {}/manifest\r\n", target.url).leak();
    for status in [301, 302, 303, 307, 308] {
        let away = Answer::Http(status, redirect, "moved".into());
        let peer = Peer::with(away.clone(), away).await;
        let server = Server::with("m", &peer.url).await;
        let error = server.modules.reports().remove(0).source.error.unwrap();
        assert_eq!(error, format!("Module returned status {status}: moved"));
        peer.set_tools("m", &[tool("f", "guest")]);
        server.modules.refresh().await;
        assert_eq!(server.error("m.f").await.message(), format!("Module returned status {status}: moved"));
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn m1_garbage_is_reported_and_the_good_tools_stay() {
    let peer = Peer::new("m", &[tool("f", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    let deep = "[".repeat(1 << 20);
    let many = format!(r#"{{"tools":[{}1]}}"#, "1,".repeat(100_000));
    for garbage in ["", "null", "[]", "{}", "<html>", "{\"tools\": 3}", "\u{0}", &deep, &many] {
        peer.set_manifest(Answer::Http(200, "", garbage.to_owned()));
        let reports = server.modules.refresh().await;
        assert!(reports[0].source.error.is_some(), "{}", garbage.get(..20).unwrap_or(garbage));
        assert_eq!(server.names(), ["m.f"]);
        assert_eq!(server.call("m.f").await.for_model(), "done");
    }
    peer.set_manifest(Answer::talk(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\xff\xfe\xfd\xfc").await;
    }));
    assert_eq!(server.modules.refresh().await[0].source.error.as_deref(), Some("the manifest is not UTF-8"));
    // Within a tool, garbage costs that tool.
    let (open, close) = ("[".repeat(10_000), "]".repeat(10_000));
    let good = tool("g", "guest");
    peer.set_manifest(Answer::Http(200, "", format!(r#"{{"tools":[{open}{close},{good}]}}"#)));
    let report = server.modules.refresh().await.remove(0);
    assert_eq!(
        (report.source.error, report.source.faults[0].tool.as_str(), server.names()),
        (None, "number 1", vec!["m.g".into()])
    );
}

#[tokio::test]
async fn b3_a_tool_with_hidden_text_is_left_out_and_the_others_are_there() {
    let mut hidden = tool("b", "guest");
    hidden["parameters"][0]["description"] = "The path.\u{e0049}\u{e0067}".into();
    let peer = Peer::new("m", &[tool("a", "guest"), hidden, tool("../etc", "guest")]).await;
    let server = Server::with("m", &peer.url).await;
    assert_eq!(server.names(), ["m.a"]);
    let faults = &server.modules.reports()[0].source.faults;
    let reported: Vec<_> = faults.iter().map(|fault| (&*fault.tool, fault.taken)).collect();
    assert_eq!(reported, [("../etc", false), ("b", false)]);
    assert!(faults[1].message.contains("U+E0049"), "{faults:?}");
}

#[tokio::test]
async fn b5_a_hundred_calls_go_on_undisturbed_beside_a_module_that_hangs() {
    let peer = Peer::with(Answer::json(&manifest("m", &[tool("f", "guest")])), drip()).await;
    let patient = Duration::from_secs(20);
    let settings = ModulesSettings {
        module_timeout: patient,
        discovery_timeout: patient,
        ..quick(&[("m", ModuleSettings::new(&peer.url))])
    };
    let server = Arc::new(Server::new(settings));
    server.modules.ready().await;
    let quickly = handler_fn(|_, _| async { Ok(ToolResult::new("here")) });
    let schema = json!({"type": "object"});
    server.registry.register(ToolSpec::new("near", schema), ToolPolicy::new(), Some(quickly)).unwrap();
    let hanging: Vec<_> = (0..64)
        .map(|_| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.call("m.f").await })
        })
        .collect();
    peer.set_manifest(drip());
    let refreshing = server.modules.clone();
    let refresh = tokio::spawn(async move { refreshing.refresh().await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let began = Instant::now();
    for _ in 0..100 {
        server.modules.ready().await;
        assert_eq!(server.registry.select(&ada()).tools().len(), 2);
        assert_eq!(server.call("near").await.for_model(), "here");
    }
    assert!(began.elapsed() < patient / 2, "{:?}", began.elapsed());
    // Those that neither run nor wait were refused at once; the others still hang.
    let busy = || hanging.iter().filter(|call| call.is_finished()).count();
    // A busy machine may not have begun all of them by now.
    until(|| busy() >= 64 - 2 * 16).await;
    assert_eq!((busy(), refresh.is_finished()), (64 - 2 * 16, false));
    refresh.abort();
    hanging.iter().for_each(|call| call.abort());
}
