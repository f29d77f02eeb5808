//! Tools that ask the user, through a client that shows forms: requirement B19.

use std::sync::atomic::AtomicUsize;

use llm_bridge::server::Access;
use registry_core::testing::TestClock;

use super::{peer::text, *};

fn rack() -> Rack {
    let rack = Rack::new();
    let which = handler_fn(|context: ToolContext, _: Map<String, Value>| async move {
        let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
        Ok(ToolResult::new(format!("{account}: 40 EUR")))
    });
    rack.add_with(ToolSpec::new("balance", json!({"type": "object"})), ToolPolicy::new(), which);
    rack
}

#[tokio::test]
async fn b19_a_form_asks_while_the_call_waits_and_again_where_the_answer_does_not_fit() {
    let rack = rack();
    let mut peer = rack.peer(Era::Legacy, json!({"elicitation": {}})).await;
    for answer in ["Jont", "Joint"] {
        peer.says.push_back(json!({"action": "accept", "content": {"answer": answer}}));
    }
    let answer = peer.call("balance", json!({})).await;
    assert_eq!(text(&answer), "Joint: 40 EUR", "{answer}");
    assert_eq!(peer.forms[0]["message"], "Which account?");
    assert_eq!(peer.forms[0]["requestedSchema"]["properties"]["answer"]["enum"], json!(["Savings", "Joint"]));
    assert!(peer.forms[1]["message"].as_str().unwrap().contains("did you mean"), "{:?}", peer.forms);
    assert_eq!(rack.last().questions[0].outcome, "answered");
    peer.says.push_back(json!({"action": "decline"}));
    let answer = peer.call("balance", json!({})).await;
    assert!(text(&answer).contains("declined to answer"), "{answer}");
}

#[tokio::test]
async fn b19_a_client_without_forms_is_told_at_once() {
    for era in peer::ERAS {
        let rack = rack();
        let answer = rack.peer(era, json!({})).await.call("balance", json!({})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer).contains("nobody can be asked here"), "{answer}");
        assert!(rack.registry.pending_questions().await.unwrap().is_empty());
    }
}

/// A client of 2026-07-28 over HTTP.
struct Client<'r> {
    rack: &'r crate::t_access::Rack,
    key: String,
}

impl Client<'_> {
    /// Calls the tool, with more in the request.
    async fn call(&self, tool: &str, arguments: Value, more: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = self.rack.post("/mcp", &self.key, &body);
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool);
        let told = within(request.send()).await.unwrap().text().await.unwrap();
        let data = told.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&told);
        serde_json::from_str(data).unwrap_or_else(|_| panic!("{told}"))
    }

    /// The same call with the form's state and an answer.
    async fn again(&self, tool: &str, asked: &Value, said: Value) -> Value {
        let asked = &asked["result"];
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let more = json!({"requestState": asked["requestState"], "inputResponses": {key: said}});
        self.call(tool, json!({}), more).await
    }
}

/// The message of the form that a result asks to show.
fn form(answer: &Value) -> &str {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1);
    let form = requests.values().next().unwrap();
    assert_eq!((&form["method"], &form["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    form["params"]["message"].as_str().unwrap()
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// How much to send, and what for.
#[registry_core::args]
struct Amount {
    /// How much, in EUR.
    amount: u32,
    /// What for.
    note: Option<String>,
}

/// A server with tools that ask, and how often they have begun.
async fn served(clock: TestClock) -> (crate::t_access::Rack, Arc<AtomicUsize>) {
    let audit = Arc::new(MemoryAudit::new(1000));
    let builder = Registry::builder().without_compiled().audit(audit.clone()).clock(Arc::new(clock));
    let registry = builder.build().unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    let add = |name: &str, policy: ToolPolicy| {
        let begun = Arc::clone(&begun);
        let transfer = handler_fn(move |context: ToolContext, _: Map<String, Value>| {
            begun.fetch_add(1, Ordering::SeqCst);
            async move {
                let account = context.ask("Which account?", ["Savings", "Joint"]).await;
                let account = match account {
                    Err(registry_core::AskError::Declined { .. }) => "Current".to_owned(),
                    account => account?,
                };
                let Amount { amount, note } = context.ask_for("How much?").await?;
                Ok(ToolResult::new(format!("{amount} EUR from {account} ({})", note.unwrap_or_default())))
            }
        });
        registry.register(ToolSpec::new(name, json!({"type": "object"})), policy, Some(transfer)).unwrap();
    };
    let user = Permission::User;
    add("look", ToolPolicy { cooldown: Duration::from_secs(60), ..ToolPolicy::new() });
    add("send", ToolPolicy { effect: Effect::Write, permission: user, resumable: true, ..ToolPolicy::new() });
    add("erase", ToolPolicy { resumable: true, ..destructive() });
    add("half", ToolPolicy { effect: Effect::Write, permission: user, ..ToolPolicy::new() });
    let caller = Caller::new("local", Permission::User);
    (crate::t_access::Rack::start_with(Access::default(), caller, registry, audit).await, begun)
}

#[tokio::test]
async fn b19_a_client_of_2026_07_28_is_asked_by_the_result_and_brings_the_answers_in_the_next_request() {
    let (rack, begun) = served(TestClock::default()).await;
    let ada = Client { rack: &rack, key: rack.user("default", "ada", Permission::User).await };
    let eve = Client { rack: &rack, key: rack.user("default", "eve", Permission::User).await };
    for tool in ["look", "send"] {
        let first = ada.call(tool, json!({}), json!({})).await;
        assert_eq!(form(&first), "Which account?");
        let schema = &first["result"]["inputRequests"]["question"]["params"]["requestedSchema"];
        assert_eq!(schema["properties"]["answer"]["enum"], json!(["Savings", "Joint"]));
        // Without the answer it is asked again, under the same state.
        let state = json!({"requestState": first["result"]["requestState"]});
        let same = ada.call(tool, json!({}), state).await;
        assert_eq!(
            (form(&same), &same["result"]["requestState"]),
            ("Which account?", &first["result"]["requestState"])
        );
        // What does not fit, too, with the reason; the tool is not run for that.
        let before = begun.load(Ordering::SeqCst);
        let wrong = ada.again(tool, &first, accept(json!({"answer": "Jont"}))).await;
        assert!(form(&wrong).contains("did you mean \"Joint\"?\nWhich account?"), "{wrong}");
        assert_eq!(begun.load(Ordering::SeqCst), before);
        for no_answer in [json!(1), json!({"content": {"answer": "Joint"}})] {
            let refused = ada.again(tool, &first, no_answer).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        // Of another user, it is no state at all.
        let stolen = eve.again(tool, &first, accept(json!({"answer": "Savings"}))).await;
        assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
        assert!(stolen["error"]["message"].as_str().unwrap().contains("make the call again without it"));
        let second = ada.again(tool, &wrong, accept(json!({"answer": "Joint"}))).await;
        assert_eq!(form(&second), "How much?");
        let done = ada.again(tool, &second, accept(json!({"amount": 40, "note": "rent"}))).await;
        assert_eq!(text(&done), "40 EUR from Joint (rent)", "{done}");
        // The answers were good for that call.
        let anew = ada.again(tool, &second, accept(json!({"amount": 40}))).await;
        if tool == "look" {
            assert!(text(&anew).contains("once in 60 s"), "only a call that came to an end counts: {anew}");
        } else {
            assert_eq!(form(&anew), "Which account?");
        }
    }
}

#[tokio::test]
async fn b19_a_declined_question_goes_to_the_tool_and_an_expired_one_is_asked_again() {
    let clock = TestClock::default();
    let (rack, _) = served(clock.clone()).await;
    let ada = Client { rack: &rack, key: rack.user("default", "ada", Permission::User).await };
    for action in ["decline", "cancel"] {
        let first = ada.call("send", json!({}), json!({})).await;
        let second = ada.again("send", &first, json!({"action": action})).await;
        assert_eq!(form(&second), "How much?", "the tool knows what to do without the account");
        let failed = ada.again("send", &second, json!({"action": action})).await;
        assert_eq!(failed["result"]["isError"], true, "{failed}");
        assert!(text(&failed).contains("declined to answer"), "{failed}");
    }
    let first = ada.call("send", json!({}), json!({})).await;
    clock.advance(Duration::from_secs(301));
    let late = ada.again("send", &first, accept(json!({"answer": "Joint"}))).await;
    assert_eq!(form(&late), "The answer came too late, so it is asked again.\nWhich account?");
    assert_ne!(late["result"]["requestState"], first["result"]["requestState"]);
    let second = ada.again("send", &late, accept(json!({"answer": "Joint"}))).await;
    assert_eq!(text(&ada.again("send", &second, accept(json!({"amount": 1}))).await), "1 EUR from Joint ()");
}

#[tokio::test]
async fn b19_a_call_that_was_approved_and_asks_is_approved_once() {
    let (rack, _) = served(TestClock::default()).await;
    let ada = Client { rack: &rack, key: rack.user("default", "ada", Permission::User).await };
    let approval = ada.call("erase", json!({}), json!({})).await;
    assert!(form(&approval).starts_with("Run erase with these arguments?"));
    let first = ada.again("erase", &approval, accept(json!({"approve": true}))).await;
    assert_eq!(form(&first), "Which account?");
    let second = ada.again("erase", &first, accept(json!({"answer": "Joint"}))).await;
    assert_eq!(form(&second), "How much?");
    assert_eq!(text(&ada.again("erase", &second, accept(json!({"amount": 2}))).await), "2 EUR from Joint ()");
    // The next call is another.
    assert!(form(&ada.call("erase", json!({}), json!({})).await).starts_with("Run erase"));
}

#[tokio::test]
async fn b19_a_tool_that_may_have_changed_something_is_not_run_again_for_an_answer() {
    let (rack, begun) = served(TestClock::default()).await;
    let ada = Client { rack: &rack, key: rack.user("default", "ada", Permission::User).await };
    let refused = ada.call("half", json!({}), json!({})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(text(&refused).contains("`resumable`"), "{refused}");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn b19_a_form_of_an_mcp_client_never_asks_for_a_secret() {
    let rack = Rack::new();
    let secret = handler_fn(|context: ToolContext, _: Map<String, Value>| async move {
        #[registry_core::args]
        struct Login {
            /// The PIN.
            #[arg(secret)]
            pin: String,
        }
        let Login { pin } = context.ask_for("Your PIN?").await?;
        Ok(ToolResult::new(pin))
    });
    rack.add("login", ToolPolicy::new(), secret);
    let mut peer = rack.peer(Era::Modern, json!({"elicitation": {}})).await;
    let answer = peer.call("login", json!({})).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text(&answer).contains("forms of MCP clients must not ask for secrets"), "{answer}");
}

/// A session of an earlier revision over HTTP, whose client shows forms and opens no stream of its own.
pub(super) async fn session(rack: &crate::t_access::Rack, key: &str) -> String {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let begun = within(rack.post("/mcp", key, &body).send()).await.unwrap();
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    within(rack.post("/mcp", key, &ready).header("mcp-session-id", &session).send()).await.unwrap();
    session
}

fn look() -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "look", "arguments": {}}})
}

#[tokio::test]
async fn b19_a_form_comes_on_the_stream_of_the_call_that_asks() {
    let (rack, _) = served(TestClock::default()).await;
    let key = rack.user("default", "ada", Permission::User).await;
    let session = session(&rack, &key).await;
    let post = |body: Value| rack.post("/mcp", &key, &body).header("mcp-session-id", &session);
    let mut stream = within(post(look()).send()).await.unwrap();
    let mut text = String::new();
    let mut answered = 0;
    while let Some(chunk) = within(stream.chunk()).await.unwrap() {
        text += str::from_utf8(&chunk).unwrap();
        let messages =
            text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let forms: Vec<Value> =
            messages.filter(|message| message["method"] == "elicitation/create").collect();
        for form in &forms[answered..] {
            let content = if answered == 0 { json!({"answer": "Joint"}) } else { json!({"amount": 5}) };
            let said = json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": content}});
            answered += 1;
            within(post(said).send()).await.unwrap();
        }
    }
    assert!(text.contains("5 EUR from Joint"), "{text}");
    assert_eq!(answered, 2);
}

#[tokio::test]
async fn b19_a_client_that_takes_json_alone_is_not_asked_by_a_stream() {
    let (rack, _) = served(TestClock::default()).await;
    let key = rack.user("default", "ada", Permission::User).await;
    let session = session(&rack, &key).await;
    let call = rack.post("/mcp", &key, &look()).header("mcp-session-id", &session);
    let answer: Value =
        within(call.header("accept", "application/json").send()).await.unwrap().json().await.unwrap();
    assert!(text(&answer).contains("nobody can be asked here"), "{answer}");
}
