//! Fetches from servers on loopback, which stand for public ones where a test allows their address.

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ipnet::Ipv4Net;
use registry_core::ErrorKind;
use reqwest::{
    Method,
    dns::{Addrs, Name, Resolve, Resolving},
    header::HeaderMap,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

const LOOPBACK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
const ONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const TWO: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A server that gives the bytes `answer` makes for a path, then closes. Counts its connections.
async fn serve(
    at: SocketAddr,
    answer: impl Fn(&str) -> Vec<u8> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut request = vec![0; 8192];
            let read = socket.read(&mut request).await.unwrap_or_default();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let _ = socket.write_all(&answer(path)).await;
            let _ = socket.shutdown().await;
        }
    });
    (address, connections)
}

fn any_port(address: Ipv4Addr) -> SocketAddr {
    SocketAddr::new(address.into(), 0)
}

fn ok(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{headers}\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn found(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n")
        .into()
}

/// Answers with the addresses in turn, as a hostile name server does.
struct Turns {
    answers: Vec<Vec<Ipv4Addr>>,
    asked: AtomicUsize,
}

impl Turns {
    fn new(answers: &[&[Ipv4Addr]]) -> Self {
        Self { answers: answers.iter().map(|answer| answer.to_vec()).collect(), asked: AtomicUsize::new(0) }
    }
}

impl Resolve for Turns {
    fn resolve(&self, _: Name) -> Resolving {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst) % self.answers.len();
        let answer: Vec<SocketAddr> = self.answers[turn].iter().map(|address| any_port(*address)).collect();
        Box::pin(async move { Ok(Box::new(answer.into_iter()) as Addrs) })
    }
}

#[tokio::test]
async fn k6_what_a_name_stands_for_is_shown_to_the_operator_alone() {
    let inside = Ipv4Addr::new(10, 1, 2, 3);
    let client = PublicHttpClient::builder().resolver(Turns::new(&[&[inside]])).build().unwrap();
    let error = client.fetch("http://wiki.example/").await.unwrap_err();
    assert_eq!(error.message(), "wiki.example is not on the public internet and may not be fetched");
    assert_eq!(error.detail(), "wiki.example may not be fetched: 10.1.2.3 is not a public address");
    assert!(!error.feedback().contains("10.1.2.3"), "{error}");
}

#[tokio::test]
async fn k6_an_address_that_the_operator_configured_is_shown_to_the_operator_alone() {
    async fn search(url: String) -> Result<String, ToolError> {
        Ok(HttpClient::new()?.get(url).send().await?.error_for_status()?.text().await?)
    }
    let (engine, _) = serve(any_port(ONE), |_| {
        b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec()
    })
    .await;
    let nobody = search("http://127.0.0.1:1/search?key=hidden".to_owned()).await.unwrap_err();
    for error in [nobody, search(format!("http://{engine}/search?key=hidden")).await.unwrap_err()] {
        assert!(error.is_retryable(), "{error:?}");
        assert!(!error.message().contains("127.0.0.1") && !error.message().contains("hidden"), "{error}");
        assert!(error.detail().contains("http://127.0.0.1:"), "{}", error.detail());
    }
}

#[tokio::test]
async fn a_page_is_fetched() {
    let (address, _) =
        serve(any_port(ONE), |_| ok("Content-Type: text/plain; charset=latin1\r\n", b"caf\xe9")).await;
    let client = PublicHttpClient::builder().allow(LOOPBACK).build().unwrap();
    let page = client.fetch(&format!("http://{address}/x?y=z")).await.unwrap();
    assert_eq!(page.status, 200);
    assert_eq!(page.media_type(), "text/plain");
    assert_eq!(page.text(), "café");
    assert_eq!(page.url.path(), "/x");
}

/// All the ways to write them are in the attack table, `llm-bridge/tests/data/url_attacks.txt`.
#[tokio::test]
async fn what_may_not_be_fetched_is_reported_in_two_texts() {
    let client = PublicHttpClient::new().unwrap();
    let error = client.fetch("http://2130706433:1/").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(error.message(), "127.0.0.1 is not on the public internet and may not be fetched");
    assert!(!error.is_retryable());
    for url in ["file:///etc/passwd", "http://user:secret@example.org/", "http://user:secret@[/"] {
        let error = client.fetch(url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{url}: {error}");
        assert!(!error.message().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn the_address_that_is_checked_is_connected_to() {
    let (good, _) = serve(any_port(TWO), |_| ok("", b"public")).await;
    let (_, reached) = serve(SocketAddr::new(ONE.into(), good.port()), |_| ok("", b"private")).await;
    let client = PublicHttpClient::builder()
        .allow(Ipv4Net::from(TWO))
        .resolver(Turns::new(&[&[TWO], &[ONE]]))
        .build()
        .unwrap();
    let url = format!("http://rebinding.test:{}/", good.port());
    for _ in 0..3 {
        assert_eq!(client.fetch(&url).await.unwrap().text(), "public");
        let error = client.fetch(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.detail().contains("127.0.0.1"), "{error}");
        for text in [error.message(), error.feedback()] {
            assert!(!text.contains("127.0.0.1"), "nobody else sees what is where: {text}");
        }
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn one_private_address_among_public_ones_is_enough_to_refuse() {
    let (address, reached) = serve(any_port(TWO), |_| ok("", b"")).await;
    let client = PublicHttpClient::builder()
        .allow(Ipv4Net::from(TWO))
        .resolver(Turns::new(&[&[TWO, ONE]]))
        .build()
        .unwrap();
    let error = client.fetch(&format!("http://mixed.test:{}/", address.port())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_named_host_may_lead_anywhere() {
    let (address, _) = serve(any_port(ONE), |_| ok("", b"wiki")).await;
    let client =
        PublicHttpClient::builder().allow_host("wiki.test").resolver(Turns::new(&[&[ONE]])).build().unwrap();
    assert_eq!(client.fetch(&format!("http://Wiki.test:{}/", address.port())).await.unwrap().text(), "wiki");
    let error = client.fetch(&format!("http://other.test:{}/", address.port())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn each_redirect_is_checked() {
    let (private, reached) = serve(any_port(ONE), |_| ok("", b"private")).await;
    let targets = [
        (format!("http://{private}/"), ErrorKind::PermissionDenied),
        (format!("//{private}/"), ErrorKind::PermissionDenied),
        (format!("http://2130706433:{}/", private.port()), ErrorKind::PermissionDenied),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), ErrorKind::PermissionDenied),
        ("http://localhost/".to_owned(), ErrorKind::PermissionDenied),
        ("file:///etc/passwd".to_owned(), ErrorKind::InvalidArguments),
        ("http://user:pass@example.org/".to_owned(), ErrorKind::InvalidArguments),
        ("http://[".to_owned(), ErrorKind::Failed),
    ];
    for (target, kind) in targets {
        let answer = found(&target);
        let (public, _) = serve(any_port(TWO), move |_| answer.clone()).await;
        let client = PublicHttpClient::builder().allow(Ipv4Net::from(TWO)).build().unwrap();
        let error = client.fetch(&format!("http://{public}/")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{target}: {error}");
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn b21_what_is_sent_is_checked_and_not_redirected() {
    let (private, reached) = serve(any_port(ONE), |_| ok("", b"private")).await;
    let to_private = found(&format!("http://{private}/"));
    let (public, _) = serve(any_port(TWO), move |_| to_private.clone()).await;
    let client = PublicHttpClient::builder().allow(Ipv4Net::from(TWO)).build().unwrap();
    let send =
        async |url: String| client.send(Method::POST, url.parse().unwrap(), HeaderMap::new(), "a=b").await;
    assert_eq!(send(format!("http://{public}/")).await.unwrap().status, 302);
    assert_eq!(send(format!("http://{private}/")).await.unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirects_are_followed_up_to_five() {
    let (address, connections) =
        serve(any_port(ONE), |path| match path.trim_start_matches('/').parse::<u32>() {
            Ok(0) => ok("", b"there"),
            Ok(left) => found(&format!("{}", left - 1)),
            Err(_) => found("/loop"),
        })
        .await;
    let client = PublicHttpClient::builder().allow(LOOPBACK).build().unwrap();
    let page = client.fetch(&format!("http://{address}/5")).await.unwrap();
    assert_eq!((page.text().as_ref(), page.url.path()), ("there", "/0"));
    assert!(client.fetch(&format!("http://{address}/6")).await.unwrap_err().message().contains("redirects"));
    connections.store(0, Ordering::SeqCst);
    client.fetch(&format!("http://{address}/loop")).await.unwrap_err();
    assert_eq!(connections.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn a_body_is_measured_after_decompression() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        bomb.write_all(&[0; 1024 * 1024]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 100 * 1024);
    let (address, _) = serve(any_port(ONE), move |path| match path {
        "/bomb" => ok(&format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", bomb.len()), &bomb),
        "/announced" => ok("Content-Length: 99999999\r\n", b"x"),
        "/endless" => ok("", &vec![b'x'; 200 * 1024]),
        _ => ok("", &vec![b'x'; 100 * 1024]),
    })
    .await;
    let client = PublicHttpClient::builder().allow(LOOPBACK).max_bytes(100 * 1024).build().unwrap();
    for path in ["bomb", "announced", "endless"] {
        let error = client.fetch(&format!("http://{address}/{path}")).await.unwrap_err();
        assert!(error.message().contains("larger than 102400 bytes"), "{path}: {error}");
    }
    assert_eq!(client.fetch(&format!("http://{address}/fits")).await.unwrap().body.len(), 100 * 1024);
}

#[tokio::test]
async fn slowness_ends() {
    let listener = TcpListener::bind(any_port(ONE)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = socket.read(&mut [0; 1024]).await;
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await;
                while socket.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    });
    let client =
        PublicHttpClient::builder().allow(LOOPBACK).timeout(Duration::from_millis(200)).build().unwrap();
    let started = Instant::now();
    let error = client.fetch(&format!("http://{address}/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.is_retryable());
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_server_that_is_not_there_may_be_there_later() {
    let listener = TcpListener::bind(any_port(ONE)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = PublicHttpClient::builder().allow(LOOPBACK).build().unwrap();
    let error = client.fetch(&format!("http://{address}/?token=secret")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.is_retryable());
    assert!(error.message().starts_with("127.0.0.1: ") && !error.message().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_status_is_an_answer() {
    let (address, _) = serve(any_port(ONE), |_| {
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone".to_vec()
    })
    .await;
    let client = PublicHttpClient::builder().allow(LOOPBACK).build().unwrap();
    let page = client.fetch(&format!("http://{address}/")).await.unwrap();
    assert_eq!((page.status.as_u16(), page.text().as_ref(), page.media_type().as_str()), (404, "gone", ""));
}

#[tokio::test]
async fn the_plain_client_reaches_this_machine() {
    let (address, _) = serve(any_port(ONE), |_| ok("", b"here")).await;
    let client = HttpClient::new().unwrap();
    assert_eq!(client.get(format!("http://{address}/")).send().await.unwrap().text().await.unwrap(), "here");
}

#[test]
fn an_ipv4_net_holds_its_mapped_addresses_too() {
    let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
    let allowed = resolve::Allowed { nets: vec![LOOPBACK.into()], hosts: vec![] };
    assert!(allowed.address(mapped).is_ok());
}
