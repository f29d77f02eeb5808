//! Documents that are found by vectors of a server: `toolrack documents …` and `toolrack serve` in front of one that counts words,
//! synonyms as one.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use llm_bridge::upstream::{EmbeddingModel, Upstream, UpstreamEmbedder};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use toolrack_documents::{EmbedError, Embedder, TextRole};

const SYNONYMS: [&[&str]; 2] = [&["car", "automobile"], &["repaired", "mended", "fixed"]];
const DIMENSIONS: usize = 48;

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
        let place = SYNONYMS.iter().position(|synonyms| synonyms.contains(&word)).unwrap_or_else(|| {
            let hash = word.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
            SYNONYMS.len() + hash % (DIMENSIONS - SYNONYMS.len())
        });
        vector[place] += 1.0;
    }
    vector
}

/// What was asked: the header `authorization` and the body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A server of embeddings.
struct Server {
    address: SocketAddr,
    asked: Asked,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(address: &str) -> Self {
        let asked = Asked::default();
        let routes = Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&asked));
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, asked, task }
    }

    fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    async fn stop(self) -> SocketAddr {
        self.task.abort();
        let _ = self.task.await;
        self.address
    }
}

/// As llama.cpp does: what is too long is refused with 500, and all that was asked for with it.
async fn answer(State(asked): State<Asked>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
    asked.lock().unwrap().push((key.unwrap_or_default(), body.clone()));
    let texts: Vec<&str> =
        body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    if texts.iter().any(|text| text.len() > 1000) {
        let error = json!({"error": {"code": 500, "message": "input is too large to process"}});
        return (StatusCode::INTERNAL_SERVER_ERROR, Json(error)).into_response();
    }
    // Servers need not keep the order.
    let row = |(index, text): (usize, &&str)| json!({"object": "embedding", "index": index, "embedding": vector(text)});
    let data: Vec<Value> = texts.iter().enumerate().map(row).rev().collect();
    Json(json!({"object": "list", "model": body["model"], "data": data})).into_response()
}

fn command(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied()).current_dir(folder).stdin(Stdio::null());
    command
}

/// What a run printed and reported, and whether it went well.
async fn run(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> (String, String, bool) {
    let mut command = command(folder, variables, arguments);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

/// A folder with documents, and with the settings for a server at that address.
fn folder(address: SocketAddr) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "upstream = \"demo\"\n[documents.embeddings]\nmodel = \"counts\"\nupstream = \"http://{address}/v1\"\n\
         upstream_api_key = \"secret\"\nquery_prefix = \"q: \"\npassage_prefix = \"p: \"\n"
    );
    for (name, text) in [
        ("one.md", "# Garage\n\nThe automobile was mended by noon.\n"),
        ("two.md", "# Tea\n\nGreen tea is steeped at 75 degrees.\n"),
        ("toolrack.toml", &settings),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

const ADD: [&str; 4] = ["documents", "add", "one.md", "two.md"];
const SEARCH: [&str; 4] = ["documents", "search", "car", "repaired"];
const WITHOUT: (&str, &str) = ("TOOLRACK_CONFIG", "none.toml");

#[tokio::test(flavor = "multi_thread")]
async fn p6_a_paraphrase_is_found_through_the_server() {
    let server = Server::start("127.0.0.1:0").await;
    let folder = folder(server.address);
    let at = folder.path();
    let (_, reported, well) = run(at, &[], &ADD).await;
    assert!(well && reported.contains("2 passages were given vectors of counts"), "{reported}");
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0].0.as_str()), (1, "Bearer secret"));
    assert_eq!((&asked[0].1["model"], &asked[0].1["encoding_format"]), (&json!("counts"), &json!("float")));
    let texts = asked[0].1["input"].as_array().unwrap();
    assert!(texts.contains(&json!("p: Garage\n\nThe automobile was mended by noon.")), "{texts:?}");
    let (printed, reported, well) = run(at, &[], &SEARCH).await;
    assert!(well && printed.lines().next().unwrap().contains("one.md"), "{printed}{reported}");
    assert_eq!(server.asked()[0].1["input"], json!(["q: car repaired"]));
    // By its words alone it is not found.
    fs::write(at.join("none.toml"), "upstream = \"demo\"\n").unwrap();
    let (_, reported, well) = run(at, &[WITHOUT], &SEARCH).await;
    assert!(!well && reported.contains("nothing was found"), "{reported}");

    let (_, reported, well) = run(at, &[], &["documents", "embed"]).await;
    assert!(well && reported.contains("0 passages were given vectors"), "{reported}");
    let (_, reported, well) = run(at, &[], &["documents", "embed", "--again", "one.md"]).await;
    assert!(well && reported.contains("1 passages were given vectors"), "{reported}");
    assert_eq!(server.asked().len(), 1);
    let (_, reported, well) = run(at, &[], &["documents", "embed", "--again"]).await;
    assert!(well && reported.contains("2 passages were given vectors"), "{reported}");
    server.asked();
    let (_, reported, well) = run(at, &[WITHOUT], &["documents", "embed"]).await;
    assert!(!well && reported.contains("[documents.embeddings]"), "{reported}");

    // What is there is left; another model, and what is put before passages, make other vectors.
    assert!(run(at, &[], &ADD).await.1.contains("0 passages were given vectors"));
    assert_eq!(server.asked(), []);
    for variable in [("TOOLRACK_EMBEDDINGS_MODEL", "other"), ("TOOLRACK_EMBEDDINGS_PASSAGE_PREFIX", "text: ")]
    {
        let (_, reported, _) = run(at, &[variable], &ADD).await;
        assert!(reported.contains("2 passages were given vectors"), "{variable:?}: {reported}");
    }
    assert!(run(at, &[], &["documents", "remove", "one.md"]).await.2);
    let (printed, ..) = run(at, &[], &SEARCH).await;
    assert!(!printed.contains("one.md"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_without_the_server_documents_are_added_and_found_by_their_words() {
    let server = Server::start("127.0.0.1:0").await;
    let folder = folder(server.address);
    let at = folder.path();
    let address = server.stop().await;
    let (_, reported, well) = run(at, &[], &ADD).await;
    assert!(well && reported.contains("2 added"), "{reported}");
    for part in ["warning", "found by their words alone until", "toolrack serve", &address.to_string()] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let (printed, reported, well) = run(at, &[], &["documents", "search", "automobile", "mended"]).await;
    assert!(
        well && printed.contains("one.md") && reported.contains("by their words alone"),
        "{printed}{reported}"
    );
    assert!(!run(at, &[], &SEARCH).await.2);
    let _server = Server::start(&address.to_string()).await;
    let (_, reported, _) = run(at, &[], &ADD).await;
    assert!(
        reported.contains("2 unchanged") && reported.contains("2 passages were given vectors"),
        "{reported}"
    );
    assert!(run(at, &[], &SEARCH).await.2);
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_a_text_that_is_too_long_for_the_model_stops_no_other() {
    let server = Server::start("127.0.0.1:0").await;
    let folder = folder(server.address);
    let at = folder.path();
    fs::write(
        at.join("one.md"),
        format!("# Garage\n\nThe automobile was mended. {}\n", "so on ".repeat(200)),
    )
    .unwrap();
    // Under headings that are as long as headings may be, half of it is too long as well.
    let headings: String =
        (1..=5).map(|level| format!("{} {}\n", "#".repeat(level), "long ".repeat(38))).collect();
    fs::write(at.join("two.md"), format!("{headings}\n{}\n", "tea ".repeat(380))).unwrap();
    let (_, reported, well) = run(at, &[], &ADD).await;
    assert!(well && reported.contains("1 passages were given vectors"), "{reported}");
    assert!(
        reported.contains("1 were refused") && reported.contains("input is too large to process"),
        "{reported}"
    );
    assert!(run(at, &[], &SEARCH).await.0.lines().next().unwrap().contains("one.md"));
}

/// The program, until it is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_the_server_gives_vectors_in_the_background() {
    let server = Server::start("127.0.0.1:0").await;
    let folder = folder(server.address);
    let at = folder.path();
    fs::write(at.join("none.toml"), "upstream = \"demo\"\n").unwrap();
    assert!(run(at, &[WITHOUT], &ADD).await.2);
    assert_eq!(server.asked(), []);
    let mut serve = command(at, &[], &["serve", "--listen", "127.0.0.1:0"]);
    let _serving = Serving(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let deadline = Instant::now() + Duration::from_secs(30);
    while !run(at, &[], &SEARCH).await.2 {
        assert!(Instant::now() < deadline, "no vectors were made");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn p6_a_server_that_fails_is_told_from_a_text_that_is_refused() {
    let model = EmbeddingModel { name: "m".into(), ..EmbeddingModel::default() };
    for (status, body, is_refused, reported) in [
        (400, r#"{"error": {"message": "too many tokens"}}"#.to_owned(), true, "too many tokens"),
        (500, r#"{"error": {"message": "input is too large to process"}}"#.to_owned(), true, "too large"),
        (404, r#"{"error": {"message": "model m not found"}}"#.to_owned(), false, "model m not found"),
        (401, "no".to_owned(), false, "401"),
        (501, r#"{"error": {"message": "Start it with `--embeddings`"}}"#.to_owned(), false, "--embeddings"),
        (200, "no JSON".to_owned(), false, "cannot be read"),
        (200, format!("[{}]", "1,".repeat(3_000_000)), false, "over 4 MiB"),
    ] {
        let answer = move || async move { (StatusCode::from_u16(status).unwrap(), body) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let routes = Router::new().route("/v1/embeddings", post(answer));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let upstream = Upstream::http(&base, None, Duration::from_secs(5)).unwrap();
        let embedder = UpstreamEmbedder::new(upstream, model.clone());
        let error = embedder.embed(vec!["text".into()], TextRole::Passage).await.unwrap_err();
        assert_eq!(matches!(error, EmbedError::Refused(_)), is_refused, "{error}");
        assert!(error.to_string().contains(reported), "{error}");
    }
    let embedder = UpstreamEmbedder::new(Upstream::demo(), model);
    let error = embedder.embed(vec!["text".into()], TextRole::Passage).await.unwrap_err();
    assert!(
        matches!(error, EmbedError::Unavailable(_)) && error.to_string().contains("demo model"),
        "{error}"
    );
}

#[tokio::test]
async fn p6_a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let routes = Router::new().route("/v1/embeddings", post(std::future::pending::<()>));
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    let upstream = Upstream::http(&base, None, Duration::from_millis(100)).unwrap();
    let model = EmbeddingModel { name: "m".into(), ..EmbeddingModel::default() };
    let embedder = UpstreamEmbedder::new(upstream, model);
    let error = embedder.embed(vec!["text".into()], TextRole::Query).await.unwrap_err();
    assert!(
        matches!(error, EmbedError::Unavailable(_)) && error.to_string().contains("sent nothing"),
        "{error}"
    );
}
