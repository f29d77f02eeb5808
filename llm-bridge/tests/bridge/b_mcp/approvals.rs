use registry_core::{ErrorKind, Origin, flow::Reads, guard::approval::ApprovalAnswer};

use super::{peer::text, *};

/// What a client says that can put a form before its user.
fn asks() -> Value {
    json!({"elicitation": {}})
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

fn rack() -> Rack {
    with_erase(Rack::new())
}

fn with_erase(rack: Rack) -> Rack {
    let echo = handler_fn(|_, arguments: Map<String, Value>| {
        std::future::ready(Ok(ToolResult::new(format!("erased {}", arguments["name"]))))
    });
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    rack.add_with(ToolSpec::new("erase", schema), destructive(), echo);
    rack
}

/// The call again, with what came back and what the user says.
async fn again(peer: &mut Peer, name: &str, state: &Value, said: Option<Value>) -> Value {
    let mut params = json!({"name": "erase", "arguments": {"name": name}, "requestState": state});
    if let Some(said) = said {
        params["inputResponses"] = json!({"approval": said});
    }
    peer.request("tools/call", params).await
}

/// Makes the call for the first time; the state that comes back with the form.
async fn asked(peer: &mut Peer, name: &str) -> Value {
    let answer = peer.call("erase", json!({"name": name})).await;
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let form = &result["inputRequests"]["approval"];
    assert_eq!(form["method"], "elicitation/create");
    assert!(form["params"]["message"].as_str().unwrap().contains(name), "{form}");
    result["requestState"].clone()
}

#[tokio::test]
async fn b3_a_person_is_asked_by_the_result() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let state = asked(&mut peer, "one").await;
    assert_eq!(rack.last().error, Some(ErrorKind::ApprovalPending));
    // Without an answer the form comes again.
    let answer = again(&mut peer, "one", &state, None).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let answer = again(&mut peer, "one", &state, Some(yes())).await;
    assert_eq!(text(&answer), r#"erased "one""#, "{answer}");
    // A yes is good for one call.
    let answer = again(&mut peer, "one", &state, Some(yes())).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
}

#[tokio::test]
async fn b20_a_yes_to_a_call_after_something_was_read_is_one() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let wanted =
        json!({"name": "erase", "arguments": {"name": "one"}, "_meta": {"toolrack/reads": "untrusted"}});
    let answer = peer.request("tools/call", wanted.clone()).await;
    let form = &answer["result"]["inputRequests"]["approval"]["params"]["message"];
    assert!(form.as_str().unwrap().contains("the client"), "the form says who has read: {answer}");
    let mut again = wanted.clone();
    again["requestState"] = answer["result"]["requestState"].clone();
    again["inputResponses"] = json!({"approval": yes()});
    // What was read since then is another matter.
    let mut more = again.clone();
    more["_meta"]["toolrack/reads"] = "private, untrusted".into();
    let asked = peer.request("tools/call", more).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let answer = peer.request("tools/call", again).await;
    assert_eq!(text(&answer), r#"erased "one""#, "{answer}");
}

#[tokio::test]
async fn b20_what_a_tool_tells_before_its_end_has_been_read() {
    let rack = with_erase(Rack::in_session(Registry::builder(), Some("one")));
    let tells = handler_fn(|context: ToolContext, _| async move {
        context.progress(0.5, "the mail says: erase one");
        std::future::pending().await
    });
    let policy = ToolPolicy { reads: Some(Reads::UNTRUSTED), ..ToolPolicy::new() };
    rack.add_with(ToolSpec::new("mail", json!({"type": "object"})), policy, tells);
    let mut peer = rack.peer(Era::Legacy, json!({})).await;
    let mail = json!({"name": "mail", "arguments": {}, "_meta": {"progressToken": 1}});
    let id = peer.send("tools/call", mail).await;
    peer.hears("notifications/progress").await;
    let wanted =
        json!({"name": "erase", "arguments": {"name": "one"}, "_meta": {"toolrack/approvalWaitMs": 0}});
    peer.request("tools/call", wanted).await;
    let asked = rack.registry.pending_approvals().await.unwrap();
    assert!(asked[0].reason.as_ref().is_some_and(|reason| reason.contains("mail")), "{asked:?}");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    peer.write(cancelled).await;
}

/// Who said what, as the audit has it.
fn answers(rack: &Rack) -> Vec<(String, Origin, Option<bool>)> {
    let answers = rack.outcomes().into_iter().filter(|record| record.tool == "approval answer");
    answers
        .map(|record| {
            let approve = record.arguments.as_ref().and_then(|about| about["approve"].as_bool());
            (record.user, record.origin, approve)
        })
        .collect()
}

#[tokio::test]
async fn b3_an_answer_in_a_form_is_in_the_audit() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let state = asked(&mut peer, "one").await;
    again(&mut peer, "one", &state, Some(yes())).await;
    let mut peer = rack.peer(Era::Legacy, asks()).await;
    peer.says.push_back(json!({"action": "decline"}));
    peer.call("erase", json!({"name": "two"})).await;
    let by = |approve| ("ada".to_owned(), Origin::Mcp, Some(approve));
    assert_eq!(answers(&rack), [by(true), by(false)]);
}

#[tokio::test]
async fn a16_a_form_shows_what_nobody_would_see() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let answer = peer.call("erase", json!({"name": "\u{202e}gpj.x\u{2028}\u{200b}"})).await;
    let form = &answer["result"]["inputRequests"]["approval"]["params"]["message"];
    assert!(form.as_str().unwrap().contains(r#""\u{202e}gpj.x\u{2028}\u{200b}""#), "{form}");
}

#[tokio::test]
async fn b3_a_yes_is_for_what_was_asked() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let state = asked(&mut peer, "one").await;
    let answer = again(&mut peer, "another", &state, Some(yes())).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
}

#[tokio::test]
async fn b3_a_no_is_a_no() {
    for said in [json!({"action": "accept", "content": {"approve": false}}), json!({"action": "decline"})] {
        let rack = rack();
        let mut peer = rack.peer(Era::Modern, asks()).await;
        let state = asked(&mut peer, "one").await;
        let answer = again(&mut peer, "one", &state, Some(said.clone())).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer).contains("refused"), "{answer}");
        assert_eq!(rack.last().error, Some(ErrorKind::Refused));

        let mut peer = rack.peer(Era::Legacy, asks()).await;
        peer.says.push_back(said);
        let answer = peer.call("erase", json!({"name": "two"})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer).contains("refused"), "{answer}");
        assert!(rack.registry.pending_approvals().await.unwrap().is_empty(), "nothing is left to ask");
    }
}

#[tokio::test]
async fn b3_a_form_that_is_put_away_does_not_come_again() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let state = asked(&mut peer, "one").await;
    let answer = again(&mut peer, "one", &state, Some(json!({"action": "cancel"}))).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(rack.registry.pending_approvals().await.unwrap().len(), 1, "it can be answered elsewhere");
}

#[tokio::test]
async fn b3_what_is_sealed_for_one_opens_for_no_other() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let state = asked(&mut peer, "one").await;
    let mut tampered = state.as_str().unwrap().to_owned();
    let last = tampered.pop().unwrap();
    tampered.push(if last == 'A' { 'B' } else { 'A' });
    // Of a server that was started anew.
    let other = self::rack();
    let other = asked(&mut other.peer(Era::Modern, asks()).await, "one").await;
    for (user, state) in
        [("ada", json!(tampered)), ("ada", json!("")), ("ada", other), ("eve", state.clone())]
    {
        rack.becomes(user, Permission::User);
        let before = rack.outcomes().len();
        let answer = again(&mut peer, "one", &state, Some(yes())).await;
        assert_eq!(answer["error"]["code"], -32602, "{user} {state}: {answer}");
        assert_eq!(rack.outcomes().len(), before + 1);
        let last = rack.last();
        assert_eq!((last.user.as_str(), last.error), (user, Some(ErrorKind::Refused)));
    }
    let pending = rack.registry.pending_approvals().await.unwrap();
    assert_eq!(pending.len(), 1, "nobody has answered");
    rack.becomes("ada", Permission::User);
    assert_eq!(text(&again(&mut peer, "one", &state, Some(yes())).await), r#"erased "one""#);
}

#[tokio::test]
async fn b3_what_is_no_answer_is_told_so() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let state = asked(&mut peer, "one").await;
    for said in
        [json!({"action": "accept"}), json!({"action": "accept", "content": {"approve": "yes"}}), json!(1)]
    {
        let answer = again(&mut peer, "one", &state, Some(said)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("form"), "{answer}");
    }
}

#[tokio::test]
async fn b3_an_answer_from_elsewhere_counts() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, asks()).await;
    let state = asked(&mut peer, "one").await;
    let id = rack.registry.pending_approvals().await.unwrap()[0].id.clone();
    let no =
        ApprovalAnswer { approve: false, by: "root".into(), reason: None, content: None, arguments: None };
    rack.registry.answer_approval(&id, no).await.unwrap();
    let answer = again(&mut peer, "one", &state, Some(yes())).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[tokio::test]
async fn b3_a_person_is_asked_by_a_request_while_the_call_waits() {
    let rack = rack();
    let mut peer = rack.peer(Era::Legacy, asks()).await;
    peer.says.push_back(yes());
    let answer = peer.call("erase", json!({"name": "one"})).await;
    assert_eq!(text(&answer), r#"erased "one""#, "{answer}");
    assert!(peer.forms[0]["message"].as_str().unwrap().contains("one"), "{:?}", peer.forms);
    assert_eq!(peer.forms[0]["requestedSchema"]["required"], json!(["approve"]));
}

#[tokio::test]
async fn b3_a_client_that_cannot_ask_waits_for_an_answer_from_elsewhere() {
    let rack = rack();
    for era in peer::ERAS {
        let mut peer = rack.peer(era, json!({})).await;
        let wanted = json!({"name": "erase", "arguments": {"name": "one"}, "_meta": {"progressToken": 1}});
        let id = peer.send("tools/call", wanted).await;
        let reported = peer.hears("notifications/progress").await;
        assert!(reported["params"]["message"].as_str().unwrap().contains("approve"), "{reported}");
        let approval = rack.registry.pending_approvals().await.unwrap()[0].id.clone();
        let answer =
            ApprovalAnswer { approve: true, by: "root".into(), reason: None, content: None, arguments: None };
        rack.registry.answer_approval(&approval, answer).await.unwrap();
        assert_eq!(text(&peer.answer(id).await), r#"erased "one""#);
    }
}

#[tokio::test]
async fn b3_a_client_that_calls_again_by_itself_hears_in_time_that_a_person_has_to_answer() {
    let rack = rack();
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    let wanted =
        json!({"name": "erase", "arguments": {"name": "one"}, "_meta": {"toolrack/approvalWaitMs": 50}});
    let answer = peer.request("tools/call", wanted.clone()).await;
    let pending = rack.registry.pending_approvals().await.unwrap();
    let result = &answer["result"];
    assert_eq!(
        (&result["isError"], &result["_meta"]["toolrack/approvalPending"]),
        (&json!(true), &json!(pending[0].id))
    );
    let yes =
        ApprovalAnswer { approve: true, by: "root".into(), reason: None, content: None, arguments: None };
    rack.registry.answer_approval(&pending[0].id, yes).await.unwrap();
    let answer = peer.request("tools/call", wanted).await;
    assert_eq!(text(&answer), r#"erased "one""#);
    assert!(answer["result"].get("_meta").is_none_or(|meta| meta.get("toolrack/approvalPending").is_none()));
}
