//! Several model servers: who is asked for which model, and who is asked when one is away.

use std::time::Duration;

use llm_bridge::upstream::{Upstream, UpstreamSettings};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::support::{Act, Answer, Rack, Reply, Scripted, Setup, Site, event, text_event, user, within};

/// A server under test before two model servers; the first is `upstream` of the rack.
struct Two {
    rack: Rack,
    other: Scripted,
}

const IDLE: Duration = Duration::from_millis(500);

async fn two(
    one: (&[&str], Vec<Reply>),
    other: (&[&str], Vec<Reply>),
    change: impl Fn(&mut UpstreamSettings),
) -> Two {
    let first = Scripted::start_as(Site::with_models(one.0), one.1).await;
    let second = Scripted::start_as(Site::with_models(other.0), other.1).await;
    let settings = [("one", first.base()), ("two", second.base())].map(|(name, url)| {
        let mut settings = UpstreamSettings { name: name.into(), ..UpstreamSettings::new(url, IDLE) };
        change(&mut settings);
        settings
    });
    let rack = Setup::new().start_with(first, Upstream::several(settings).unwrap()).await;
    Two { rack, other: second }
}

/// The address of a server that is down, which nobody else gets while the socket is there.
fn away() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = format!("http://{}/v1", socket.local_addr().unwrap());
    (socket, address)
}

fn falls_back(settings: &mut UpstreamSettings) {
    settings.fallback = (settings.name == "one").then(|| "two".into());
}

fn with_patterns(settings: &mut UpstreamSettings) {
    let pattern = if settings.name == "one" { "qwen*" } else { "llama*" };
    settings.models = vec![pattern.to_owned().try_into().unwrap()];
}

impl Two {
    /// Asks for a model: the status, and the names under which each server was asked.
    async fn ask(&self, model: &str) -> (u16, Vec<String>, Vec<String>) {
        let reported = self.rack.chat(json!({"model": model, "messages": [user("Go.")]})).await;
        let names = |server: &Scripted| -> Vec<String> {
            server.asked().iter().map(|asked| asked.body["model"].as_str().unwrap().to_owned()).collect()
        };
        (reported.status, names(&self.rack.upstream), names(&self.other))
    }

    /// The models, without their names for requests without the server's tools.
    async fn models(&self) -> Vec<String> {
        let reply = within(self.rack.client.get(self.rack.url("/v1/models")).send()).await.unwrap();
        let list: Value = reply.json().await.unwrap();
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .filter(|name| !name.ends_with(":plain"))
            .collect()
    }
}

fn hi(count: usize) -> Vec<Reply> {
    std::iter::repeat_with(|| Reply::text("Hi.")).take(count).collect()
}

#[tokio::test]
async fn b14_a_model_is_asked_of_the_server_that_lists_it_or_is_named() {
    for (model, one, other) in [
        ("a", Some("a"), None),
        ("b", None, Some("b")),
        ("both", Some("both"), None),
        ("two/both", None, Some("both")),
        ("one/unlisted", Some("unlisted"), None),
        // A name that a server lists goes before the name of a server.
        ("one/b", None, Some("one/b")),
    ] {
        let servers = two((&["a", "both"], hi(1)), (&["b", "both", "one/b"], hi(1)), |_| ()).await;
        let (status, first, second) = servers.ask(model).await;
        assert_eq!(status, 200, "{model}");
        assert_eq!(first, one.into_iter().collect::<Vec<_>>(), "{model}");
        assert_eq!(second, other.into_iter().collect::<Vec<_>>(), "{model}");
    }
    let servers = two((&["a"], hi(1)), (&["b"], hi(1)), |_| ()).await;
    assert_eq!(servers.ask("c").await, (404, vec![], vec![]));
}

#[tokio::test]
async fn b14_patterns_choose_where_no_list_does() {
    let servers = two((&["a", "qwen3:8b"], hi(2)), (&["llama3"], hi(2)), with_patterns).await;
    assert_eq!(servers.models().await, ["qwen3:8b", "llama3"], "a server is for the models of its patterns");
    assert_eq!(servers.ask("qwen3-unlisted").await.1, ["qwen3-unlisted"]);
    assert_eq!(servers.ask("llama4").await.2, ["llama4"]);
    assert_eq!(servers.ask("a").await.0, 404);
}

#[tokio::test]
async fn b14_the_list_is_of_all_servers_that_are_there() {
    let servers = two((&["a", "both"], vec![]), (&["b", "both"], hi(2)), |_| ()).await;
    assert_eq!(servers.models().await, ["a", "both", "b"]);
    let (_away, away) = away();
    let there = Scripted::start_as(Site::with_models(&["b"]), hi(1)).await;
    let settings = [("one", away), ("two", there.base())]
        .map(|(name, url)| UpstreamSettings { name: name.into(), ..UpstreamSettings::new(url, IDLE) });
    let rack = Setup::new().start_with(there, Upstream::several(settings).unwrap()).await;
    let servers = Two { rack, other: Scripted::start([]).await };
    assert_eq!(servers.models().await, ["b"]);
    assert_eq!(servers.ask("b").await.0, 200);
    assert_eq!(servers.ask("a").await.0, 502, "the server that is away may have it");
}

#[tokio::test]
async fn b14_another_server_is_asked_before_the_first_word() {
    let begun = event(&json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}));
    for (name, reply) in [
        ("fails", Reply::error(500, "out of memory")),
        ("is busy", Reply::error(503, "loading")),
        ("has too much to do", Reply::error(429, "later")),
        ("stalls", Reply::stream([Act::Stall])),
        ("stalls after an empty event", Reply::stream([begun.clone(), Act::Stall])),
        ("breaks off", Reply::stream([begun.clone(), Act::Reset])),
        ("fails in its stream", Reply::stream([event(&json!({"error": {"message": "out of memory"}}))])),
    ] {
        for stream in [true, false] {
            let servers = two((&["m"], vec![reply.clone()]), (&["other"], hi(1)), |settings| {
                falls_back(settings);
                settings.fallback_model = Some("other".into());
            })
            .await;
            let body = json!({"model": "m", "messages": [user("Go.")], "stream": stream});
            let reported = servers.rack.chat(body).await;
            assert_eq!((reported.status, reported.content.as_str()), (200, "Hi."), "{name}");
            assert_eq!(servers.rack.upstream.asked().len(), 1, "{name}");
            assert_eq!(servers.other.asked()[0].body["model"], "other", "{name}");
        }
    }
}

#[tokio::test]
async fn b14_no_other_server_is_asked_after_the_first_word_or_for_a_fault_of_the_request() {
    for (name, reply) in [
        ("breaks off", Reply::stream([text_event("Well"), Act::Reset])),
        (
            "thinks and breaks off",
            Reply::stream([
                event(&json!({"choices": [{"index": 0, "delta": {"reasoning_content": "Hm"}}]})),
                Act::Reset,
            ]),
        ),
        (
            "has begun a call",
            Reply::stream([
                event(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [
                {"index": 0, "id": "c", "type": "function", "function": {"name": "add", "arguments": "{"}}]}}]})),
                Act::Reset,
            ]),
        ),
        ("stalls", Reply::stream([text_event("Well"), Act::Stall])),
        ("refuses the request", Reply::error(400, "the conversation is too long")),
        ("does not have the model", Reply::error(404, "no such model")),
        ("wants a key", Reply::error(401, "a key is missing")),
    ] {
        let servers = two((&["m"], vec![reply]), (&["other"], hi(1)), falls_back).await;
        let body = json!({"model": "m", "messages": [user("Go.")], "stream": true});
        let reported = servers.rack.chat(body).await;
        assert!(reported.error.is_some(), "{name}: {reported:?}");
        assert!(servers.other.asked().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn b14_each_server_is_asked_once_and_the_last_error_is_reported() {
    let replies = || vec![Reply::error(500, "broken one")];
    let servers = two((&["m"], replies()), (&["m"], vec![Reply::error(503, "broken two")]), |settings| {
        let other = if settings.name == "one" { "two" } else { "one" };
        settings.fallback = Some(other.into());
    })
    .await;
    let reported = servers.rack.chat(json!({"model": "m", "messages": [user("Go.")]})).await;
    assert_eq!(reported.status, 503);
    let message = reported.error.unwrap()["message"].to_string();
    assert!(message.contains("broken two"), "{message}");
    assert_eq!((servers.rack.upstream.asked().len(), servers.other.asked().len()), (1, 1));
}

#[tokio::test]
async fn b14_a_server_that_cannot_read_its_own_call_is_not_away() {
    let call = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}</tool_call>";
    let unread = Reply::error(500, &format!("Failed to parse input at pos 0: {call}"));
    let servers = two((&["m"], vec![unread, Answer::text("3").into()]), (&["m"], hi(1)), falls_back).await;
    let reported = servers.rack.chat(json!({"model": "m", "messages": [user("Go.")]})).await;
    assert_eq!(reported.content, "3");
    assert_eq!(servers.rack.ran().len(), 1);
    assert!(servers.other.asked().is_empty());
}

#[tokio::test]
async fn b14_another_server_is_asked_for_what_is_passed_on() {
    let vectors = json!({"data": [{"embedding": [1.0]}]});
    for (name, reply) in
        [("fails", Reply::error(500, "out of memory")), ("is busy", Reply::error(429, "later"))]
    {
        let other = vec![Reply::json(200, &vectors)];
        let servers = two((&["m"], vec![reply]), (&["other"], other), |settings| {
            falls_back(settings);
            settings.fallback_model = Some("other".into());
        })
        .await;
        let rack = &servers.rack;
        let post =
            rack.client.post(rack.url("/v1/embeddings")).json(&json!({"model": "m", "input": "a", "x": 1.0}));
        let answer = within(post.send()).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap()),
            (200, vectors.clone()),
            "{name}"
        );
        assert_eq!(rack.upstream.asked()[0].body["model"], "m", "{name}");
        assert_eq!(
            servers.other.asked()[0].body,
            json!({"model": "other", "input": "a", "x": 1.0}),
            "{name}"
        );
    }
    // A fault of the request, and the last server's own answer, come back as they are.
    for (first, second, status, asked) in [
        (Reply::error(400, "too long"), Reply::text("no"), 400, 0),
        (Reply::error(500, "one"), Reply::error(503, "two"), 503, 1),
    ] {
        let servers = two((&["m"], vec![first]), (&["m"], vec![second]), falls_back).await;
        let post = servers
            .rack
            .client
            .post(servers.rack.url("/v1/completions"))
            .json(&json!({"model": "m", "prompt": "a"}));
        assert_eq!(within(post.send()).await.unwrap().status(), status);
        assert_eq!(servers.other.asked().len(), asked);
    }
    // A form names its model where nobody looks: it goes to the first, and to the one that this falls back to.
    let form = Reply::body(200, "text/plain", "Hello.");
    let servers = two((&["m"], vec![Reply::error(503, "loading")]), (&["m"], vec![form]), falls_back).await;
    let post = servers.rack.client.post(servers.rack.url("/v1/audio/transcriptions"));
    let post = post.header("content-type", "multipart/form-data; boundary=b").body("--b--\r\n");
    assert_eq!(within(post.send()).await.unwrap().text().await.unwrap(), "Hello.");
    assert!(servers.other.asked()[0].head.contains("boundary=b"));
}

#[tokio::test]
async fn b14_what_is_passed_on_has_the_name_that_a_single_named_server_knows() {
    let upstream =
        Scripted::start_as(Site::with_models(&["m"]), [Reply::json(200, &json!({"data": []}))]).await;
    let settings = UpstreamSettings { name: "one".into(), ..UpstreamSettings::new(upstream.base(), IDLE) };
    let rack = Setup::new().start_with(upstream, Upstream::several([settings]).unwrap()).await;
    let asked = json!({"model": "one/m", "input": "a", "x": 1.0});
    let post = rack.client.post(rack.url("/v1/embeddings")).json(&asked);
    assert_eq!(within(post.send()).await.unwrap().status(), 200);
    assert_eq!(rack.upstream.asked()[0].body, json!({"model": "m", "input": "a", "x": 1.0}));
}

#[tokio::test]
async fn b14_another_server_is_asked_for_what_is_passed_on_where_the_first_is_down() {
    let (_away, away) = away();
    let there =
        Scripted::start_as(Site::with_models(&["other"]), [Reply::json(200, &json!({"data": []}))]).await;
    let settings = [("one", away), ("two", there.base())].map(|(name, url)| {
        let mut settings = UpstreamSettings { name: name.into(), ..UpstreamSettings::new(url, IDLE) };
        falls_back(&mut settings);
        settings
    });
    let rack = Setup::new().start_with(there, Upstream::several(settings).unwrap()).await;
    let post = rack.client.post(rack.url("/v1/embeddings")).json(&json!({"model": "m", "input": "a"}));
    assert_eq!(within(post.send()).await.unwrap().status(), 200);
    assert_eq!(rack.upstream.asked()[0].body["model"], "m");
}

#[test]
fn b14_settings_that_cannot_be_meant_are_refused() {
    let settings = |name: &str, fallback: Option<&str>| UpstreamSettings {
        name: name.into(),
        fallback: fallback.map(str::to_owned),
        ..UpstreamSettings::new("http://127.0.0.1:9/v1", IDLE)
    };
    let fault = Upstream::several([settings("a", Some("c")), settings("b", None)]).unwrap_err();
    assert!(fault.contains("a: fallback: there is no upstream `c`"), "{fault}");
    let fault = Upstream::several([settings("a", None), settings("a", None)]).unwrap_err();
    assert!(fault.contains("same name"), "{fault}");
}

/// Ollama's clients write `NAME:latest`, and its lists do, for what others call `NAME`.
#[tokio::test]
async fn b14_the_latest_version_of_a_model_is_found_under_either_name() {
    for (asked, expected) in
        [("a:latest", "a"), ("one/a:latest", "a"), ("b", "b:latest"), ("b:latest", "b:latest")]
    {
        let hi = || vec![Reply::text("Hi.")];
        let (status, one, other) = two((&["a"], hi()), (&["b:latest"], hi()), |_| ()).await.ask(asked).await;
        let names: Vec<String> = one.into_iter().chain(other).collect();
        assert_eq!((status, names.as_slice()), (200, &[expected.to_owned()][..]), "{asked}");
    }
    for (listed, asked, expected) in [
        ("m", "m:latest", "m"),
        ("m:latest", "m:latest", "m:latest"),
        ("m", "other:latest", "other:latest"),
        ("m:latest", "m", "m"),
    ] {
        let upstream = Scripted::start_as(Site::of_kind("vllm", &[listed]), [Reply::text("Hi.")]).await;
        let base = upstream.base();
        let rack = Setup::new().start_before(upstream, &base).await;
        let body = json!({"model": asked, "messages": [user("Go.")], "stream": false});
        let reply = within(rack.client.post(rack.url("/api/chat")).json(&body).send()).await.unwrap();
        assert_eq!(reply.status(), 200, "{asked}");
        assert_eq!(rack.upstream.asked()[0].body["model"], expected, "{listed} {asked}");
    }
}

/// With the names for requests without tools, each was once compared with all.
#[tokio::test]
async fn a50_of_a_list_of_models_so_many_are_known() {
    let long = "x".repeat(513);
    let many: Vec<String> = (0..50_000).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = std::iter::once(&long).chain(&many).map(String::as_str).collect();
    let servers = two((&names, Vec::new()), (&["b"], Vec::new()), |_| ()).await;
    let mut expected = many;
    expected.truncate(10_000);
    expected.push("b".to_owned());
    assert!(servers.models().await == expected);
}
