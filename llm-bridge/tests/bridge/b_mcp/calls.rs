use registry_core::ErrorKind;
use tokio::sync::Notify;

use super::{
    peer::{ERAS, text},
    *,
};

#[tokio::test]
async fn b3_a_call_takes_the_one_path() {
    let rack = Rack::new();
    let echo = handler_fn(|_, arguments| std::future::ready(Ok(ToolResult::new(Value::Object(arguments)))));
    let mut spec = ToolSpec::new("echo", json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    spec.output_schema = json!({"type": "object"});
    rack.add_with(spec, ToolPolicy::new(), echo);
    rack.add("words", ToolPolicy::new(), says(json!({"a": 1})));
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let answer = peer.call("echo", json!({"n": "4"})).await;
        assert_eq!(answer["result"]["structuredContent"], json!({"n": 4}), "coerced: {answer}");
        assert_eq!(text(&answer), r#"{"n":4}"#);
        assert_eq!(rack.last().success, Some(true));
        let answer = peer.call("words", json!({})).await;
        assert_eq!(answer["result"].get("structuredContent"), None, "no schema was listed: {answer}");
        assert_eq!(text(&answer), r#"{"a":1}"#);
        let answer = peer.call("echo", json!({"n": "four"})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer).contains('n'), "{answer}");
        assert_eq!(rack.last().error, Some(ErrorKind::InvalidArguments));
    }
}

#[tokio::test]
async fn b3_an_unknown_tool_is_an_error_of_the_protocol() {
    let rack = Rack::new();
    rack.add("echo", ToolPolicy::new(), says("e"));
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let answer = peer.call("ecko", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("`echo`"), "{answer}");
        let last = rack.last();
        assert_eq!((last.tool.as_str(), last.error), ("ecko", Some(ErrorKind::ToolNotFound)));
    }
}

#[tokio::test]
async fn b3_what_is_refused_is_a_result() {
    let rack = Rack::new();
    rack.add("admins", ToolPolicy { permission: Permission::Admin, ..ToolPolicy::new() }, says("a"));
    rack.add("once", ToolPolicy { daily_limit: 1, ..ToolPolicy::new() }, says("o"));
    rack.add("fails", ToolPolicy::new(), handler_fn(|_, _| async { Err(ToolError::failed("no luck")) }));
    rack.add("panics", ToolPolicy::new(), handler_fn(|_, _| async { panic!("boo") }));
    rack.add(
        "in vain",
        ToolPolicy::new(),
        handler_fn(|_, _| async { Ok(ToolResult::unsuccessful("nothing there")) }),
    );
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    assert_eq!(text(&peer.call("once", json!({})).await), "o");
    for (tool, kind) in [
        ("admins", Some(ErrorKind::PermissionDenied)),
        ("once", Some(ErrorKind::ToolRateLimited)),
        ("fails", Some(ErrorKind::Failed)),
        ("panics", Some(ErrorKind::Panicked)),
        ("in_vain", None),
    ] {
        let answer = peer.call(tool, json!({})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(!text(&answer).is_empty(), "{answer}");
        assert_eq!((rack.last().success, rack.last().error), (Some(false), kind), "{tool}");
    }
}

#[tokio::test]
async fn b3_pictures_sound_and_documents_come_as_blocks() {
    let rack = Rack::new();
    let document = |resource: Value| Content::Resource { resource: resource.as_object().unwrap().clone() };
    let content = vec![
        Content::Image { data: "AAAA".into(), mime_type: "image/png".into() },
        Content::Audio { data: "AAAA".into(), mime_type: "audio/wav".into() },
        document(json!({"uri": "file:///a", "mimeType": "text/plain", "text": "its text"})),
        // Without an address it is no document of the protocol, and its text is not lost.
        document(json!({"text": "adrift"})),
    ];
    let shown = move |value: Value| {
        let content = content.clone();
        handler_fn(move |_, _| {
            let result = ToolResult { content: content.clone(), ..ToolResult::new(value.clone()) };
            std::future::ready(Ok(result))
        })
    };
    rack.add("shown", ToolPolicy::new(), shown(Value::Null));
    rack.add("beside", ToolPolicy::new(), shown("found".into()));
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    let kinds = |answer: &Value| {
        let blocks = answer["result"]["content"].as_array().unwrap().clone();
        blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let answer = peer.call("shown", json!({})).await;
    assert_eq!(kinds(&answer), ["image", "audio", "resource", "text"]);
    assert_eq!(answer["result"]["content"][3]["text"], "adrift");
    let answer = peer.call("beside", json!({})).await;
    assert_eq!(kinds(&answer), ["text", "image", "audio", "resource", "text"]);
    assert_eq!(answer["result"]["content"][0]["text"], "found");
}

#[tokio::test]
async fn b3_progress_rises_and_ends_with_the_call() {
    let rack = Rack::new();
    let left: Arc<Mutex<Vec<ToolContext>>> = Arc::default();
    let kept = Arc::clone(&left);
    let tool = handler_fn(move |context: ToolContext, _| {
        // A tool may leave something behind that still could speak.
        kept.lock().unwrap().push(context.clone());
        async move {
            context.progress(0.5, "half");
            context.status("a word");
            context.progress(0.2, "back");
            context.progress(f64::NAN, "odd");
            context.progress(1.0, "done");
            Ok(ToolResult::new("d"))
        }
    });
    rack.add("tool", ToolPolicy::new(), tool);
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let wanted = json!({"name": "tool", "arguments": {}, "_meta": {"progressToken": "p"}});
        let answer = peer.request("tools/call", wanted).await;
        assert_eq!(text(&answer), "d");
        let reported: Vec<Value> = peer
            .heard
            .iter()
            .filter(|message| message["method"] == "notifications/progress")
            .cloned()
            .collect();
        let numbers: Vec<f64> =
            reported.iter().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
        assert_eq!(numbers.len(), 5, "{reported:?}");
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        assert!(reported.iter().all(|one| one["params"]["progressToken"] == "p"), "{reported:?}");
        assert_eq!(reported[0]["params"]["message"], "half");
    }
    left.lock().unwrap()[0].status("too late");
}

/// A tool that waits until it is stopped, and says that it has begun.
fn waits(begun: &Arc<Notify>) -> Arc<dyn Handler> {
    let begun = Arc::clone(begun);
    handler_fn(move |_, _| {
        begun.notify_one();
        std::future::pending()
    })
}

#[tokio::test]
async fn b7_a_cancelled_call_ends_and_leaves_its_record() {
    let rack = Rack::new();
    let begun = Arc::new(Notify::new());
    rack.add("waits", ToolPolicy::new(), waits(&begun));
    for (number, era) in ERAS.into_iter().enumerate() {
        let mut peer = rack.peer(era, json!({})).await;
        let id = peer.send("tools/call", json!({"name": "waits", "arguments": {}})).await;
        within(begun.notified()).await;
        let params = json!({"requestId": id, "reason": "no more"});
        peer.write(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
        until(|| rack.outcomes().len() > number).await;
        assert_eq!(rack.last().error, Some(ErrorKind::Cancelled));
    }
}

#[tokio::test]
async fn b7_a_client_that_goes_away_and_a_server_that_ends_cancel_the_call() {
    let rack = Rack::new();
    let begun = Arc::new(Notify::new());
    rack.add("waits", ToolPolicy::new(), waits(&begun));
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    peer.send("tools/call", json!({"name": "waits", "arguments": {}})).await;
    within(begun.notified()).await;
    drop(peer);
    until(|| rack.outcomes().len() == 1).await;
    assert_eq!(rack.last().error, Some(ErrorKind::Cancelled));

    let mut peer = rack.peer(Era::Legacy, json!({})).await;
    let id = peer.send("tools/call", json!({"name": "waits", "arguments": {}})).await;
    within(begun.notified()).await;
    rack.closing.cancel();
    assert_eq!(peer.answer(id).await["result"]["isError"], true);
    rack.calls.close();
    within(rack.calls.wait()).await;
    assert_eq!(rack.outcomes().len(), 2);
    assert_eq!(rack.last().error, Some(ErrorKind::Cancelled));
}

#[tokio::test]
async fn b3_who_is_nobody_any_more_calls_nothing() {
    let rack = Rack::new();
    rack.add("tool", ToolPolicy::new(), says("t"));
    for era in ERAS {
        rack.revoked.store(false, Ordering::SeqCst);
        let mut peer = rack.peer(era, json!({})).await;
        assert_eq!(text(&peer.call("tool", json!({})).await), "t");
        rack.revoked.store(true, Ordering::SeqCst);
        let answer = peer.call("tool", json!({})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert_eq!(rack.last().error, Some(ErrorKind::PermissionDenied));
    }
}

#[tokio::test]
async fn b3_a_request_of_nobody_is_refused() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let server = McpServer::new(CancellationToken::new(), TaskTracker::new(), |_| None);
    drop(registry);
    let (here, there) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move { server.serve(there).await });
    let mut peer = Peer::new(here, Era::Modern, json!({}));
    peer.begin().await;
    for (method, params) in [("tools/list", json!({})), ("tools/call", json!({"name": "a"}))] {
        let answer = peer.request(method, params).await;
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    drop(serving);
}

#[tokio::test]
async fn b19_each_kind_of_part_is_a_block_and_a_table_structured_where_its_schema_is_listed() {
    let rack = Rack::new();
    let table = || registry_core::Table::new(["city", "degrees"]).row(("Oslo", 3));
    let shown = move |others: Vec<Content>| {
        handler_fn(move |_, _| {
            let parts = [Content::from(table())].into_iter().chain(others.clone());
            std::future::ready(Ok(ToolResult::parts(parts)))
        })
    };
    let mut spec = ToolSpec::new("table", json!({"type": "object"}));
    spec.output_schema = json!({"type": "object", "required": ["columns", "rows"]});
    rack.add_with(spec, ToolPolicy::new(), shown(Vec::new()));
    let markdown = registry_core::Markdown::new("**bold**").into();
    let file = registry_core::File::new("a b.csv", "a").into();
    let picture = registry_core::Image::of_type("image/png", "a").unwrap().into();
    let sound = registry_core::Audio::of_type("audio/wav", "a").unwrap().into();
    rack.add("parts", ToolPolicy::new(), shown(vec![markdown, file, picture, sound]));
    let pieces = handler_fn(|context: ToolContext, _| async move {
        let pieces = ["Once ", "upon a time"].map(str::to_owned);
        ToolResult::of_stream(&context, futures_util::stream::iter(pieces)).await
    });
    rack.add("pieces", ToolPolicy::new(), pieces);
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let answer = peer.call("table", json!({})).await;
        assert_eq!(text(&answer), "city,degrees\nOslo,3\n");
        let value = json!({"columns": ["city", "degrees"], "rows": [["Oslo", 3]]});
        assert_eq!(answer["result"]["structuredContent"], value, "{answer}");
        let answer = peer.call("parts", json!({})).await;
        let blocks = answer["result"]["content"].as_array().unwrap();
        let resource = json!({"uri": "file:///a%20b.csv", "mimeType": "text/csv", "blob": "YQ=="});
        assert_eq!(blocks[1], json!({"type": "text", "text": "**bold**"}));
        assert_eq!((&blocks[2]["type"], &blocks[2]["resource"]), (&json!("resource"), &resource));
        assert_eq!(blocks[3], json!({"type": "image", "data": "YQ==", "mimeType": "image/png"}));
        assert_eq!(blocks[4], json!({"type": "audio", "data": "YQ==", "mimeType": "audio/wav"}));
        assert_eq!(answer["result"].get("structuredContent"), None);
        assert_eq!(text(&peer.call("pieces", json!({})).await), "Once upon a time");
    }
}

#[tokio::test]
async fn b3_what_fails_keeps_its_picture_and_its_value() {
    let rack = Rack::new();
    let mut spec = ToolSpec::new("click", json!({"type": "object"}));
    spec.output_schema = json!({"type": "object"});
    let failed = ToolResult {
        success: false,
        content: vec![Content::Image { data: "AAAA".into(), mime_type: "image/png".into() }],
        ..ToolResult::new(json!({"code": "NO_BUTTON"}))
    };
    rack.add_with(spec, ToolPolicy::new(), handler_fn(move |_, _| std::future::ready(Ok(failed.clone()))));
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let answer = peer.call("click", json!({})).await["result"].clone();
        assert_eq!(
            (&answer["isError"], &answer["content"][1]["type"]),
            (&json!(true), &json!("image")),
            "{answer}"
        );
        assert_eq!(answer["structuredContent"], json!({"code": "NO_BUTTON"}));
    }
}

#[tokio::test]
async fn b3_parameters_that_are_not_the_protocols_are_read_or_named() {
    let rack = Rack::new();
    let echo = handler_fn(|_, arguments| std::future::ready(Ok(ToolResult::new(Value::Object(arguments)))));
    rack.add("echo", ToolPolicy::new(), echo);
    for era in ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let answer = peer.call("echo", json!("{\"a\": 1}")).await;
        assert_eq!(text(&answer), r#"{"a":1}"#, "{answer}");
        for wrong in [json!([1]), json!("words"), json!(3)] {
            let answer = peer.call("echo", wrong).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("`arguments`"), "{answer}");
        }
        let nameless = peer.request("tools/call", json!({"arguments": {}})).await;
        assert_eq!(nameless["error"]["code"], -32602, "{nameless}");
        let unknown = peer.request("tools/fetch", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    }
}

#[tokio::test]
async fn b3_what_a_client_adds_to_all_arguments_is_left_out_where_the_tool_has_no_such() {
    let rack = Rack::new();
    let echo =
        || handler_fn(|_, arguments| std::future::ready(Ok(ToolResult::new(Value::Object(arguments)))));
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {"action": {"type": "string"}}});
    rack.add_with(ToolSpec::new("closed", closed), ToolPolicy::new(), echo());
    rack.add("open", ToolPolicy::new(), echo());
    let mut peer = rack.peer(Era::Legacy, json!({})).await;
    let added = json!({"toolCallId": "a", "sessionId": "b", "action": "c", "chatInput": "d"});
    assert_eq!(text(&peer.call("closed", added.clone()).await), r#"{"action":"c"}"#);
    let open = peer.call("open", added.clone()).await;
    assert_eq!(serde_json::from_str::<Value>(&text(&open)).unwrap(), added, "{open}");
    let wrong = peer.call("closed", json!({"other": 1})).await;
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
}

#[tokio::test(start_paused = true)]
async fn b7_a_client_hears_that_a_silent_call_goes_on() {
    let rack = Rack::new();
    let slow = handler_fn(|_, _| async {
        tokio::time::sleep(Duration::from_secs(50)).await;
        Ok(ToolResult::new("slept"))
    });
    rack.add("sleeps", ToolPolicy { timeout: Duration::from_secs(100), ..ToolPolicy::new() }, slow);
    let mut peer = rack.peer(Era::Legacy, json!({})).await;
    let asked = json!({"name": "sleeps", "arguments": {}, "_meta": {"progressToken": "t"}});
    let answer = peer.request("tools/call", asked).await;
    assert_eq!(text(&answer), "slept");
    let told: Vec<f64> = peer.heard.iter().filter_map(|word| word["params"]["progress"].as_f64()).collect();
    assert!(told.len() == 3 && told.is_sorted_by(|a, b| a < b), "{:?}", peer.heard);
    let mut quiet = rack.peer(Era::Legacy, json!({})).await;
    quiet.send("tools/call", json!({"name": "sleeps", "arguments": {}})).await;
    let early = tokio::time::timeout(Duration::from_secs(19), quiet.next()).await;
    assert!(early.is_err(), "without a token nothing is said: {early:?}");
}
