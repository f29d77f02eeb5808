//! Traces of whole chats at a collector that speaks OTLP: requirement B21.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Json, Router, http::StatusCode, routing::post};
use llm_bridge::{
    traces::{TraceSettings, Traces},
    upstream::{Upstream, UpstreamModel},
};
use registry_core::{Registry, ToolError, ToolPolicy, ToolResult, model::Model};
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Scripted, Setup, until, user, within};

const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A collector, which does not take the first requests.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Value>>>,
    services: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// Its address.
    async fn start(&self, refuses: usize) -> String {
        let (collector, left) = (self.clone(), Arc::new(Mutex::new(refuses)));
        let take = async move |Json(body): Json<Value>| {
            if *left.lock().unwrap() > 0 {
                *left.lock().unwrap() -= 1;
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            let of = &body["resourceSpans"][0];
            collector.services.lock().unwrap().push(attribute(&of["resource"], "service.name"));
            collector.spans.lock().unwrap().extend(of["scopeSpans"][0]["spans"].as_array().unwrap().clone());
            StatusCode::OK
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        format!("http://{address}/v1/traces")
    }

    fn spans(&self) -> Vec<Value> {
        self.spans.lock().unwrap().clone()
    }

    fn named(&self, name: &str) -> Vec<Value> {
        self.spans().into_iter().filter(|span| span["name"] == name).collect()
    }
}

/// The value of an attribute, whatever its type.
fn attribute(of: &Value, name: &str) -> Value {
    let attributes = of["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    found.map_or(Value::Null, |found| found["value"].as_object().unwrap().values().next().unwrap().clone())
}

fn settings(endpoint: &str) -> TraceSettings {
    TraceSettings {
        endpoint: endpoint.to_owned(),
        headers: Vec::new(),
        timeout: Duration::from_secs(5),
        service: "rack".to_owned(),
        content: false,
        sample: 1.0,
    }
}

async fn rack(traces: &Traces) -> Rack {
    let setup = Setup::new()
        .plain_tool("breaks", ToolPolicy::new(), |_| async { Err(ToolError::failed("it is broken")) });
    let answers = [
        Answer::new()
            .call("c1", "add", &json!({"a": 1, "b": 41_000}))
            .call("c2", "breaks", &json!({}))
            .finish("tool_calls")
            .usage(10, 5)
            .into(),
        Answer::text("It is 41001.").usage(20, 7).into(),
    ];
    setup.with(|setup| setup.traces = Some(traces.clone())).start(answers).await
}

/// The id of the trace that the answer has in a header.
async fn ask(rack: &Rack, traceparent: Option<&str>) -> Option<String> {
    let body = json!({"model": "m", "messages": [user("What is 1 + 41000?")], "stream": true});
    let request = rack.client.post(rack.url("/v1/chat/completions")).json(&body);
    let request =
        traceparent.into_iter().fold(request, |request, value| request.header("traceparent", value));
    let answered = within(request.send()).await.unwrap();
    let said = |name| answered.headers().get(name).map(|id| id.to_str().unwrap().to_owned());
    let id = said("x-toolrack-trace");
    assert_eq!([said("x-request-id"), said("request-id")], [id.clone(), id.clone()]);
    assert!(within(answered.text()).await.unwrap().contains("41001"));
    id
}

/// The `traceparent` of the requests to the model server.
fn told(rack: &Rack) -> Vec<Option<String>> {
    told_in("traceparent", rack)
}

fn told_in(wanted: &str, rack: &Rack) -> Vec<Option<String>> {
    let header = |head: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.to_owned())
    };
    rack.upstream.asked().iter().map(|asked| header(&asked.head)).collect()
}

/// What a span tells beside its times and ids, in which any digits may be.
fn told_by(span: &Value) -> String {
    ["name", "attributes", "events", "status"].map(|field| span[field].to_string()).concat()
}

/// Waits for a span of this name and gives it.
async fn span(collector: &Collector, traces: &Traces, name: &str) -> Value {
    within(async {
        loop {
            traces.flush().await;
            match collector.named(name).pop() {
                Some(span) => return span,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_a_turn_is_a_tree_of_spans_in_the_trace_of_its_client() {
    let collector = Collector::default();
    // The collector is busy at first; nothing is lost.
    let traces = Traces::start(settings(&collector.start(1).await)).unwrap();
    let rack = rack(&traces).await;
    let id = ask(&rack, Some(CLIENT)).await.unwrap();
    within(traces.flush()).await;
    assert_eq!(id, "4bf92f3577b34da6a3ce929d0e0e4736");
    let get = async |id: &str| rack.client.get(rack.url(&format!("/api/traces/{id}"))).send().await.unwrap();
    let kept: Value = get(&id).await.json().await.unwrap();
    assert_eq!(kept["spans"].as_array().unwrap().len(), 5, "{kept}");
    assert_eq!((&kept["spans"][0]["name"], &kept["trace_id"]), (&json!("invoke_agent toolrack"), &json!(id)));
    assert_eq!(get("unknown").await.status(), 404);

    assert_eq!(collector.services.lock().unwrap().first().unwrap(), "rack");
    let [turn] = &collector.named("invoke_agent toolrack")[..] else { panic!("{:?}", collector.spans()) };
    assert_eq!(turn["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(attribute(turn, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(turn, "gen_ai.usage.input_tokens"), "30");
    assert_eq!(attribute(turn, "gen_ai.usage.output_tokens"), "12");
    assert_eq!(turn["status"], json!({}));
    let chats = collector.named("chat m");
    assert_eq!(chats.len(), 2);
    for chat in &chats {
        assert_eq!((&chat["parentSpanId"], &chat["kind"]), (&turn["spanId"], &json!(3)));
        assert_eq!(attribute(chat, "gen_ai.request.model"), "m");
    }
    assert_eq!(
        attribute(&chats[0], "gen_ai.response.finish_reasons"),
        json!({"values": [{"stringValue": "tool_calls"}]})
    );
    let [tool] = &collector.named("execute_tool add")[..] else { panic!("{:?}", collector.spans()) };
    assert_eq!(tool["parentSpanId"], turn["spanId"]);
    assert_eq!(attribute(tool, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(attribute(tool, "gen_ai.tool.name"), "add");
    assert!(attribute(tool, "gen_ai.tool.call.id").is_string() && attribute(tool, "error.type").is_null());
    let [broken] = &collector.named("execute_tool breaks")[..] else { panic!("{:?}", collector.spans()) };
    assert_eq!((&broken["status"]["code"], attribute(broken, "error.type")), (&json!(2), json!("failed")));
    for span in collector.spans() {
        assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        // What was said is in none.
        assert!(!told_by(&span).contains("4100"), "{span}");
    }
    // The model server is told in which span it is asked.
    let expected: Vec<_> = chats
        .iter()
        .map(|chat| {
            Some(format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", chat["spanId"].as_str().unwrap()))
        })
        .collect();
    assert_eq!(told(&rack), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_what_was_said_is_traced_only_where_it_is_switched_on() {
    let collector = Collector::default();
    let content = TraceSettings { content: true, ..settings(&collector.start(0).await) };
    let traces = Traces::start(content).unwrap();
    let rack = rack(&traces).await;
    ask(&rack, None).await;
    within(traces.flush()).await;
    let tool = collector.named("execute_tool add").remove(0);
    assert_eq!(attribute(&tool, "gen_ai.tool.call.arguments"), r#"{"a":1,"b":41000}"#);
    assert_eq!(attribute(&tool, "gen_ai.tool.call.result"), "sum=41001");
    let said = attribute(&collector.named("chat m")[1], "gen_ai.output.messages");
    assert!(said.as_str().unwrap().contains("It is 41001."), "{said}");
    // A trace that begins here has no parent.
    assert!(collector.named("invoke_agent toolrack")[0].get("parentSpanId").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_what_a_failing_server_quotes_is_traced_only_where_it_is_switched_on() {
    for content in [false, true] {
        let no_answer = Reply::body(200, "application/json", "[\"my secret\"]");
        for reply in [Reply::error(400, "of `my secret` I read nothing"), no_answer] {
            let collector = Collector::default();
            let traced = TraceSettings { content, ..settings(&collector.start(0).await) };
            let traces = Traces::start(traced).unwrap();
            let rack = Setup::bare().with(|setup| setup.traces = Some(traces.clone())).start([reply]).await;
            rack.ask(false).await.failure();
            let said = span(&collector, &traces, "invoke_agent toolrack").await;
            assert!(
                ["refused", "failed"].contains(&attribute(&said, "error.type").as_str().unwrap()),
                "{said}"
            );
            let all = collector.spans();
            assert_eq!(json!(all).to_string().contains("my secret"), content, "{all:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_a_trace_that_is_not_kept_is_only_passed_on() {
    let collector = Collector::default();
    let none = TraceSettings { sample: 0.0, ..settings(&collector.start(0).await) };
    let traces = Traces::start(none).unwrap();
    let unsampled = CLIENT.replace("-01", "-00");
    let first = rack(&traces).await;
    assert_eq!(ask(&first, Some(&unsampled)).await, None);
    assert_eq!(told(&first), [Some(unsampled.clone()), Some(unsampled)]);
    let second = rack(&traces).await;
    ask(&second, None).await;
    assert_eq!(told(&second), [None, None]);
    // What is no `traceparent` begins a trace, or none.
    let third = rack(&traces).await;
    ask(&third, Some("00-zz")).await;
    within(traces.flush()).await;
    assert!(collector.spans().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_without_a_collector_the_last_traces_are_kept_and_others_told_nothing_of_them() {
    let traces = Traces::in_memory(false, 1.0);
    let first = rack(&traces).await;
    let id = ask(&first, None).await.unwrap();
    assert_eq!(told(&first), [None, None], "no model server is told of a span that stays here");
    let second = rack(&traces).await;
    assert_eq!(ask(&second, Some(CLIENT)).await.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    assert_eq!(told(&second), [Some(CLIENT.to_owned()), Some(CLIENT.to_owned())], "passed on as it came");
    let get = async |path: &str| -> Value {
        second.client.get(second.url(path)).send().await.unwrap().json().await.unwrap()
    };
    let is_ended = |listed: &Value| {
        listed["traces"].as_array().unwrap().iter().all(|trace| trace["name"] == "invoke_agent toolrack")
    };
    // A turn ends after its last word is sent.
    let listed = within(async {
        loop {
            match get("/api/traces").await {
                listed if is_ended(&listed) => return listed,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await;
    let newest: Vec<_> =
        listed["traces"].as_array().unwrap().iter().map(|trace| &trace["trace_id"]).collect();
    assert_eq!(newest, [&json!("4bf92f3577b34da6a3ce929d0e0e4736"), &json!(id)]);
    let turn = &listed["traces"][1];
    assert_eq!(
        [&turn["name"], &turn["model"], &turn["calls"], &turn["failed"]],
        [&json!("invoke_agent toolrack"), &json!("m"), &json!(2), &json!(true)],
        "{turn}"
    );
    let spans = get(&format!("/api/traces/{id}")).await;
    assert_eq!(spans["spans"].as_array().unwrap().len(), 5, "{spans}");
    within(traces.flush()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_a_collector_that_is_away_holds_up_nobody() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let traces = Traces::start(settings(&format!("http://{nowhere}/v1/traces"))).unwrap();
    let rack = rack(&traces).await;
    ask(&rack, None).await;
    let asked = rack.upstream.asked().len();
    until(|| asked == 2).await;
    for wrong in ["collector:4318", "ftp://collector/", ""] {
        let fault = Traces::start(settings(wrong)).unwrap_err();
        assert!(fault.contains("traces.endpoint"), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_a_call_over_http_and_mcp_is_in_the_trace_of_its_client() {
    let collector = Collector::default();
    let traces = Traces::start(settings(&collector.start(0).await)).unwrap();
    let rack = rack(&traces).await;
    let call = json!({"tool_name": "add", "arguments": {"a": 1, "b": 41_000}});
    let request = rack.client.post(rack.url("/execute")).json(&call).header("traceparent", CLIENT);
    assert_eq!(within(request.send()).await.unwrap().status(), StatusCode::OK);
    let of_call = span(&collector, &traces, "execute_tool add").await;
    assert_eq!(of_call["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(of_call["parentSpanId"], "00f067aa0ba902b7");
    assert!(!told_by(&of_call).contains("4100"), "{of_call}");

    // In MCP the `_meta` of the call goes before the header.
    let mcp = async |tool: &str, meta: Value| {
        let mut all = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        all.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        let params = json!({"name": tool, "arguments": {}, "_meta": all});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = rack.client.post(rack.url("/mcp")).json(&body).header("traceparent", CLIENT);
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool);
        within(within(request.send()).await.unwrap().text()).await.unwrap()
    };
    let inner = "00-11111111111111111111111111111111-2222222222222222-01";
    assert!(mcp("breaks", json!({"traceparent": inner})).await.contains("broken"));
    let of_call = span(&collector, &traces, "execute_tool breaks").await;
    assert_eq!(of_call["traceId"], "11111111111111111111111111111111");
    assert_eq!(of_call["parentSpanId"], "2222222222222222");
    mcp("no_such_tool", json!({})).await;
    let of_call = span(&collector, &traces, "execute_tool unknown").await;
    assert_eq!(of_call["parentSpanId"], "00f067aa0ba902b7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_what_others_have_put_into_a_trace_is_passed_on() {
    let collector = Collector::default();
    let traces = Traces::start(settings(&collector.start(0).await)).unwrap();
    for (traces, parent, state, passed) in [
        (Some(&traces), Some(CLIENT), "vendor=1,other=x", Some("vendor=1,other=x")),
        (None, Some(CLIENT), "vendor=1", Some("vendor=1")),
        // It says something of a place in a trace, and there is none.
        (Some(&traces), None, "vendor=1", None),
        (Some(&traces), Some(CLIENT), &*"a=1,".repeat(200), None),
    ] {
        let setup = Setup::new().with(|setup| setup.traces = traces.cloned());
        let rack = setup.start([Answer::text("Hello.").into()]).await;
        let body = json!({"model": "m", "messages": [user("Hi.")]});
        let request = rack.client.post(rack.url("/v1/chat/completions")).json(&body);
        let request = request.header("tracestate", state);
        let request = parent.into_iter().fold(request, |request, value| request.header("traceparent", value));
        within(request.send()).await.unwrap();
        assert_eq!(told_in("tracestate", &rack), [passed.map(str::to_owned)], "{parent:?} {state}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_a_turn_of_a_kept_chat_is_traced() {
    let collector = Collector::default();
    let traces = Traces::start(settings(&collector.start(0).await)).unwrap();
    let rack = rack(&traces).await;
    let post = async |path: &str, body: Value| -> Value {
        let request = rack.client.post(rack.url(path)).json(&body).header("traceparent", CLIENT);
        within(within(request.send()).await.unwrap().json()).await.unwrap()
    };
    let chat = post("/api/chats", json!({})).await["id"].as_str().unwrap().to_owned();
    post(&format!("/api/chats/{chat}/turn"), json!({"content": "What is 1 + 41000?", "model": "m"})).await;
    let turn = span(&collector, &traces, "invoke_agent toolrack").await;
    assert_eq!(turn["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(attribute(&turn, "gen_ai.conversation.id"), chat.as_str());
    assert_eq!(span(&collector, &traces, "execute_tool add").await["parentSpanId"], turn["spanId"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_a_question_of_a_tool_to_the_model_has_a_span() {
    let collector = Collector::default();
    let traces = Traces::start(settings(&collector.start(0).await)).unwrap();
    let answers = [Answer::text("It is short.").usage(11, 3).into(), Answer::text("Never asked.").into()];
    let upstream = Scripted::start(answers).await;
    let model = Upstream::http(&upstream.base(), None, Duration::from_secs(20)).unwrap();
    let asked = Model::new(UpstreamModel::new(model.clone(), Some("m".to_owned())));
    let setup = Setup::bare().with(|setup| {
        setup.traces = Some(traces.clone());
        setup.registry = Registry::builder().without_compiled().resource(asked).build().unwrap();
    });
    let setup = setup.plain_tool("shorten", ToolPolicy::new(), |context| async move {
        Ok(ToolResult::new(context.model()?.ask("Shorten the secret 4711.").await?))
    });
    let rack = setup.start_with(upstream, model).await;
    let call = json!({"tool_name": "shorten", "arguments": {}});
    let request = rack.client.post(rack.url("/execute")).json(&call).header("traceparent", CLIENT);
    let reply: Value = within(within(request.send()).await.unwrap().json()).await.unwrap();
    assert_eq!(reply["result"], "It is short.");
    let tool = span(&collector, &traces, "execute_tool shorten").await;
    let chat = span(&collector, &traces, "chat m").await;
    assert_eq!((&chat["parentSpanId"], &chat["kind"]), (&tool["spanId"], &json!(3)));
    assert_eq!(attribute(&chat, "gen_ai.usage.input_tokens"), "11");
    assert_eq!(
        attribute(&chat, "gen_ai.response.finish_reasons"),
        json!({"values": [{"stringValue": "stop"}]})
    );
    let shown = told_by(&chat);
    assert!(!shown.contains("4711") && !shown.contains("short."), "{chat}");
    let place = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", chat["spanId"].as_str().unwrap());
    assert_eq!(told(&rack), [Some(place)]);
}
