//! Tools that ask the user, over HTTP: requirement B19.

use std::{sync::Arc, time::Duration};

use registry_core::{
    Effect, Registry, ToolContext, ToolError, ToolPolicy, ToolResult, guard::approval::MemoryApprovals,
    store::MemoryStore,
};
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Setup, user, with_effect, within};

async fn balance(context: ToolContext) -> Result<ToolResult, ToolError> {
    let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
    Ok(ToolResult::new(format!("{account}: 40 EUR")))
}

/// A server with a tool that asks, before a model that calls it as often as this.
async fn rack(policy: ToolPolicy, calls: usize) -> Rack {
    let setup = Setup::bare().with(|setup| {
        setup.registry = Registry::builder().without_compiled().build().unwrap();
    });
    let call = || Reply::from(Answer::new().call("c", "balance", &json!({})));
    let replies = (0..calls).flat_map(|_| [call(), Reply::text("Done.")]);
    setup.plain_tool("balance", policy, balance).start(replies.collect::<Vec<_>>()).await
}

async fn questions(rack: &Rack) -> Vec<Value> {
    let listed = within(rack.client.get(rack.url("/api/questions")).send()).await.unwrap();
    listed.json::<Value>().await.unwrap()["questions"].as_array().unwrap().clone()
}

async fn answer(rack: &Rack, id: &Value, body: Value) -> (u16, Value) {
    let path = rack.url(&format!("/api/questions/{}", id.as_str().unwrap()));
    let reply = within(rack.client.post(path).json(&body).send()).await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

#[tokio::test]
async fn b19_a_client_that_shows_questions_answers_while_the_call_waits() {
    let rack = rack(ToolPolicy::new(), 1).await;
    let body = json!({"model": "m", "stream": true, "messages": [user("Go.")], "toolrack": {"question_wait_seconds": 60}});
    let mut reply =
        within(rack.client.post(rack.url("/v1/chat/completions")).json(&body).send()).await.unwrap();
    let (mut read, mut answered) = (String::new(), false);
    while let Some(bytes) = within(reply.chunk()).await.unwrap() {
        read.push_str(std::str::from_utf8(&bytes).unwrap());
        if answered || !read.contains("/api/questions/") {
            continue;
        }
        let asked = questions(&rack).await.remove(0);
        assert_eq!((&asked["tool"], &asked["message"]), (&json!("balance"), &json!("Which account?")));
        let (status, refused) = answer(&rack, &asked["id"], json!({"answer": "Jont"})).await;
        assert_eq!(status, 422, "{refused}");
        assert!(refused.to_string().contains("did you mean"), "{refused}");
        for (status, code, body) in [
            (400, "body", json!({})),
            (400, "body", json!({"answer": "Joint", "decline": true})),
            (200, "", json!({"answer": {"answer": "Joint"}})),
            (409, "question_closed", json!({"decline": true})),
        ] {
            let (got, reply) = answer(&rack, &asked["id"], body).await;
            assert_eq!(got, status, "{reply}");
            assert!(reply.to_string().contains(code), "{reply}");
        }
        answered = true;
    }
    assert!(answered && read.contains("Joint: 40 EUR") && read.contains("Done."), "{read}");
    assert!(read.contains(r#""waits":true"#), "{read}");
    assert_eq!(rack.ran().len(), 1);
    assert!(questions(&rack).await.is_empty());
    let (status, unknown) = answer(&rack, &json!("none"), json!({"answer": "Joint"})).await;
    assert_eq!((status, unknown.to_string().contains("question_not_found")), (404, true), "{unknown}");
}

#[tokio::test]
async fn b19_the_next_message_answers_where_a_client_knows_nothing_of_questions() {
    for stream in [true, false] {
        let rack = rack(ToolPolicy::new(), 2).await;
        let first = rack.ask(stream).await;
        let shown = "[Question from the tool `balance`: Which account? 1. Savings 2. Joint — Answer in your next message, or POST";
        assert!(first.content.contains(shown), "{}", first.content);
        let told = rack.upstream.asked()[1].messages().last().unwrap().to_string();
        assert!(told.contains("Put this question to the user"), "{told}");
        let messages = json!([user("Go."), {"role": "assistant", "content": first.content}, user("2")]);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        rack.ask_with(stream, json!({"messages": messages})).await;
        let told = rack.upstream.asked()[3].messages().last().unwrap().to_string();
        assert!(told.contains("Joint: 40 EUR"), "{told}");
        assert_eq!(rack.ran().len(), 2);
    }
}

#[tokio::test]
async fn b19_what_changes_something_is_not_run_twice() {
    let rack = rack(with_effect(Effect::Write), 1).await;
    rack.ask(false).await;
    let told = rack.upstream.asked()[1].messages().last().unwrap().to_string();
    assert!(told.contains("`idempotent` or `resumable`"), "{told}");
    assert!(questions(&rack).await.is_empty());
}

#[tokio::test]
async fn b19_execute_names_the_question_and_finds_its_answer() {
    let rack = rack(ToolPolicy::new(), 0).await;
    let execute = async || {
        let body = json!({"tool_name": "balance"});
        let reply = within(rack.client.post(rack.url("/execute")).json(&body).send()).await.unwrap();
        (reply.status().as_u16(), reply.json::<Value>().await.unwrap())
    };
    let (status, pending) = execute().await;
    assert_eq!(status, 202, "{pending}");
    assert_eq!(answer(&rack, &pending["question"], json!({"answer": "Savings"})).await.0, 200);
    let (status, done) = execute().await;
    assert_eq!((status, &done["result"]), (200, &json!("Savings: 40 EUR")));
    let (_, pending) = execute().await;
    assert_eq!(answer(&rack, &pending["question"], json!({"decline": true, "reason": "no"})).await.0, 200);
    let (status, declined) = execute().await;
    assert_eq!((status, &declined["error"]), (200, &json!("the person has declined to answer: no")));
    let (status, asked) = execute().await;
    assert_eq!(status, 202, "who declines once is asked anew by another call: {asked}");
}

#[tokio::test]
async fn b19_a_question_is_answered_at_another_server_when_the_one_that_has_asked_is_gone() {
    let (approvals, state) = (Arc::new(MemoryApprovals::default()), Arc::new(MemoryStore::default()));
    let registry = || {
        let builder = Registry::builder().without_compiled().approvals(approvals.clone());
        builder.state(state.clone()).build().unwrap()
    };
    let policy = ToolPolicy { resumable: true, ..ToolPolicy::new() };
    let start = async |registry: Registry| {
        let setup = Setup::bare().with(|setup| setup.registry = registry);
        setup.plain_tool("balance", policy, balance).start(Vec::<Reply>::new()).await
    };
    let execute = |rack: &Rack, wait: u64| {
        let body = json!({"tool_name": "balance", "approval_wait_seconds": wait});
        rack.client.post(rack.url("/execute")).json(&body).send()
    };
    let first = registry();
    let one = start(first.clone()).await;
    let calling = tokio::spawn(execute(&one, 300));
    let asked = within(async {
        loop {
            if let Some(asked) = questions(&one).await.pop() {
                break asked;
            }
        }
    });
    let id = asked.await["id"].clone();
    first.leave_questions();
    calling.abort();
    let two = start(registry()).await;
    let read = async |id: &Value| {
        let path = two.url(&format!("/api/questions/{}", id.as_str().unwrap()));
        let reply = within(two.client.get(path).send()).await.unwrap();
        (reply.status().as_u16(), reply.json::<Value>().await.unwrap())
    };
    assert_eq!(read(&json!("none")).await.0, 404);
    let (_, waiting) = read(&id).await;
    assert_eq!((&waiting["state"], &waiting["call"]["state"]), (&json!("pending"), &json!("waiting")));
    assert_eq!(questions(&two).await[0]["id"], id);
    assert_eq!(answer(&two, &id, json!({"answer": "Joint"})).await.0, 200);
    assert_eq!(answer(&two, &id, json!({"answer": "Savings"})).await.0, 409);
    let done = within(async {
        loop {
            let (_, question) = read(&id).await;
            if question["call"]["state"] == "done" {
                break question;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert_eq!(done.await["call"]["result"]["result"], "Joint: 40 EUR");
    let result = within(execute(&two, 0)).await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(result["result"], "Joint: 40 EUR", "{result}");
    assert_eq!(
        within(execute(&two, 0)).await.unwrap().status().as_u16(),
        202,
        "the next call is another one"
    );
}
