//! Addresses that a model, or a page that talks to it, may name.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use registry_core::Resources;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use toolrack_http::{
    HttpClient, IpNet, PublicHttpClient,
    reqwest::dns::{Addrs, Name, Resolve, Resolving},
};
use tools::SearchEngine;

use super::{called, rows, start};

/// Stands for the public internet: the one address that may be reached, besides those that are public.
const PUBLIC: &str = "127.0.0.2";
/// What must not be reached.
const PRIVATE: [&str; 2] = ["127.0.0.1", "::1"];

/// What stands there.
const SECRET: &str = "for nobody else";

/// The names of the table. Each answers with lists of addresses in turn, as a hostile name server does.
struct Names(HashMap<String, (Vec<Vec<IpAddr>>, AtomicUsize)>);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = self.0.get(name.as_str().trim_end_matches('.')).map(|(answers, asked)| {
            let turn = asked.fetch_add(1, Ordering::SeqCst) % answers.len();
            answers[turn].iter().map(|address| SocketAddr::new(*address, 0)).collect::<Vec<_>>()
        });
        Box::pin(async move {
            let addresses = answer.ok_or("there is no such name")?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Gives `answer` of each path; counts the connections.
async fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
            let mut socket = BufReader::new(socket);
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if socket.read_line(&mut line).await.unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                lines.push(line);
            }
            let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
            let _ = socket.write_all(answer(&path).as_bytes()).await;
            let _ = socket.shutdown().await;
        }
    });
    connections
}

fn page(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn t8_every_attack_on_what_is_fetched_is_refused_with_a_message() {
    let table = rows(include_str!("../../data/url_attacks.txt"));
    // The public server and the private ones have the same port, so that an address is all that keeps them apart.
    let (public, private) = loop {
        let public = TcpListener::bind((PUBLIC, 0)).await.unwrap();
        let port = public.local_addr().unwrap().port();
        let mut private = Vec::new();
        for address in PRIVATE {
            match TcpListener::bind((address, port)).await {
                Ok(listener) => private.push(listener),
                Err(error) => println!("no server on {address}: {error}"),
            }
        }
        if !private.is_empty() {
            break (public, private);
        }
    };
    let port = public.local_addr().unwrap().port();
    let fill = |text: &str| {
        text.replace("{public}", &format!("{PUBLIC}:{port}"))
            .replace("{private}", &format!("{}:{port}", PRIVATE[0]))
            .replace("{port}", &port.to_string())
    };
    let text = |value: &Value| fill(value.as_str().unwrap());

    let mut reached = Vec::new();
    for listener in private {
        reached.push(serve(listener, |_| page(SECRET)).await);
    }
    let redirects: Vec<String> =
        table.iter().filter(|(kind, _)| kind == "redirect").map(|(_, row)| text(&row[0])).collect();
    let locations = redirects.clone();
    serve(public, move |path| match path.strip_prefix("/to/").and_then(|number| number.parse::<usize>().ok()) {
        Some(number) => {
            let location = &locations[number];
            format!(
                "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n"
            )
        }
        None => page("public"),
    })
    .await;
    let names = table.iter().filter(|(kind, _)| kind == "name").map(|(_, row)| {
        let answers = serde_json::from_value::<Vec<Vec<IpAddr>>>(row[1].clone()).unwrap();
        (row[0].as_str().unwrap().to_owned(), (answers, AtomicUsize::new(0)))
    });
    let client = PublicHttpClient::builder()
        .allow(IpNet::from(PUBLIC.parse::<IpAddr>().unwrap()))
        .resolver(Names(names.collect()))
        .build()
        .unwrap();
    let rack = start(Resources::new().with(client)).await;

    let mut faults = Vec::new();
    let mut redirected = 0;
    for (kind, row) in &table {
        let (url, reported) = match kind.as_str() {
            "refused" | "allowed" => (text(&row[0]), text(&row[1])),
            "redirect" => {
                redirected += 1;
                (fill(&format!("http://{{public}}/to/{}", redirected - 1)), text(&row[1]))
            }
            "name" | "result" => continue,
            kind => panic!(
                "there are rows `refused`, `redirect`, `name`, `allowed` and `result`, and no `{kind}`"
            ),
        };
        let before: usize = reached.iter().map(|reached| reached.load(Ordering::SeqCst)).sum();
        let (success, said) = called(&rack, "research.fetch_webpage", &json!({"url": url})).await;
        let after: usize = reached.iter().map(|reached| reached.load(Ordering::SeqCst)).sum();
        let what = format!("{kind} {url} ({})", row[0]);
        if success != (kind == "allowed") || !said.contains(&reported) {
            faults.push(format!("{what}: success {success}, `{said}` and not `{reported}`"));
        }
        if before != after || said.contains(SECRET) {
            faults.push(format!("{what} was sent"));
        }
        // Where a name leads it is not reported, or it could map the network by asking.
        if row[0].to_string().contains(".test") && said.contains(PRIVATE[0]) {
            faults.push(format!("{what}: the model is informed where that is: {said}"));
        }
    }
    let count = |kind: &str| table.iter().filter(|(of, _)| of == kind).count();
    assert!(count("refused") >= 70 && count("redirect") >= 10 && count("allowed") >= 3);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test]
async fn t8_what_a_search_engine_finds_is_pages_or_nothing() {
    let table = rows(include_str!("../../data/url_attacks.txt"));
    let hostile: Vec<&Value> =
        table.iter().filter(|(kind, _)| kind == "result").map(|(_, row)| &row[0]).collect();
    assert!(hostile.len() >= 8);
    let mut results: Vec<Value> =
        hostile.iter().map(|url| json!({"title": "Hostile", "url": url, "content": "Look here."})).collect();
    results.push(json!({"title": "Good", "url": "https://good.example/", "content": "A page."}));
    let body = json!({ "results": results }).to_string();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let engine = SearchEngine::searxng(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let asked = serve(listener, move |_| page(&body)).await;
    let rack = start(Resources::new().with(HttpClient::new().unwrap()).with(engine)).await;
    for tool in ["web_search", "research"] {
        let (success, said) = called(&rack, tool, &json!({"query": "pages"})).await;
        assert!(success && said.contains("https://good.example/"), "{tool}: {said}");
        assert!(!said.contains("Hostile"), "{tool}: {said}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
