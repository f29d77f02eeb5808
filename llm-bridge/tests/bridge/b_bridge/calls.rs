//! Calls of the server's tools, native and as text.

use std::sync::Arc;

use registry_core::{ErrorKind, Origin, TextTag, ToolPolicy, ToolResult};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::{Answer, Asked, Setup, within};

/// The calls in the last assistant message with calls, each with the result that stands behind it.
fn paired(asked: &Asked) -> Vec<(String, Value, String)> {
    let messages = asked.messages();
    let at =
        messages.iter().rposition(|message| message["tool_calls"].is_array()).expect("a message with calls");
    assert_eq!(messages[at]["role"], "assistant");
    let calls = messages[at]["tool_calls"].as_array().unwrap();
    let results = &messages[at + 1..];
    assert_eq!(results.len(), calls.len(), "one result for each call");
    calls
        .iter()
        .zip(results)
        .map(|(call, result)| {
            assert_eq!((&call["type"], &result["role"]), (&json!("function"), &json!("tool")));
            assert!(call["id"].as_str().is_some_and(|id| !id.is_empty()));
            assert_eq!(call["id"], result["tool_call_id"]);
            let arguments = call["function"]["arguments"].as_str().unwrap();
            (
                call["function"]["name"].as_str().unwrap().to_owned(),
                serde_json::from_str(arguments).unwrap(),
                result["content"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

const TEXT_CALLS: [(&str, &str); 6] = [
    ("hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>"),
    (
        "qwen3_coder",
        "<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n3\n</parameter>\n</function>",
    ),
    ("bare_json", "{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}"),
    ("bare_json", "[{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}]"),
    ("hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"2\", \"b\": 3}}</tool_call>"),
    ("tag_line", "NOTE: ünï ☃ milk"),
];

/// What the call comes to: the tool, its arguments, its result.
fn meaning(dialect: &str) -> (&'static str, Value, &'static str) {
    match dialect {
        "tag_line" => ("note", json!({"text": "ünï ☃ milk"}), "noted: ünï ☃ milk (raw: ünï ☃ milk)"),
        _ => ("add", json!({"a": 2, "b": 3}), "sum=5"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_a_text_call_is_run_wherever_it_is_cut() {
    for (dialect, call) in TEXT_CALLS {
        let rack = Setup::new().with_note(TextTag::new("NOTE")).start([]).await;
        let text = format!("One moment.\n{call}\n");
        let (name, arguments, result) = meaning(dialect);
        let mut turns = 0;
        for cut in (1..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            rack.upstream.push(Answer::text(&text[..cut]).say(&text[cut..]));
            rack.upstream.push(Answer::text("It is done."));
            let reported = rack.ask(true).await;
            turns += 1;
            let case = format!("{dialect} cut at {cut}");
            assert_eq!(
                reported.content.split_whitespace().collect::<Vec<_>>().join(" "),
                "One moment. It is done.",
                "{case}"
            );
            assert_eq!((reported.finish.as_deref(), reported.error.as_ref()), (Some("stop"), None), "{case}");
            assert_eq!(rack.ran().len(), turns, "{case}");
            assert_eq!(rack.ran().pop().unwrap(), (name.to_owned(), arguments.clone()), "{case}");
            let asked = rack.upstream.asked();
            assert_eq!(asked.len(), turns * 2, "{case}");
            let pairs = paired(&asked[turns * 2 - 1]);
            assert_eq!((pairs[0].0.as_str(), pairs[0].2.as_str()), (name, result), "{case}");
            let message = &asked[turns * 2 - 1].messages()[2];
            assert_eq!(message["content"], "One moment.", "{case}");
        }
    }
}

#[tokio::test]
async fn b2_a_text_call_is_run_when_the_answer_is_not_streamed() {
    for (dialect, call) in TEXT_CALLS {
        let first = format!("One moment.\n{call}\n");
        let setup = Setup::new().with_note(TextTag::new("NOTE"));
        let rack = setup.start([Answer::text(&first).into(), Answer::text("Done.").into()]).await;
        let reported = rack.ask(false).await;
        let (name, arguments, _) = meaning(dialect);
        assert_eq!(rack.ran(), [(name.to_owned(), arguments)], "{dialect}");
        assert_eq!(reported.content.split_whitespace().collect::<Vec<_>>().join(" "), "One moment. Done.");
        assert_eq!(reported.details_of("call_started")[0]["dialect"], dialect);
        assert_eq!(reported.details_of("call_finished")[0]["success"], true);
    }
}

#[tokio::test]
async fn b2_native_calls_come_in_pieces() {
    for stream in [true, false] {
        let piece = |index: u64, arguments: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]});
        let begin = |index: u64, id: &str, name: &str| json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]});
        let calls = Answer::text("Both.")
            .delta(begin(0, "c1", "add"))
            .delta(piece(0, "{\"a\": 2"))
            .delta(begin(1, "c2", "math_gcd"))
            .delta(piece(1, "{\"a\": 12, "))
            .delta(piece(0, ", \"b\": 3}"))
            .delta(piece(1, "\"b\": 18}"))
            .finish("tool_calls");
        let rack = Setup::new().start([calls.into(), Answer::text("5 and 6.").into()]).await;
        let reported = rack.ask(stream).await;
        assert_eq!(reported.finish.as_deref(), Some("stop"));
        let asked = rack.upstream.asked();
        assert!(asked[0].tools().contains(&"math_gcd"), "a legal name on the wire");
        let pairs = paired(&asked[1]);
        assert_eq!(pairs[0], ("add".into(), json!({"a": 2, "b": 3}), "sum=5".into()));
        assert_eq!(pairs[1], ("math_gcd".into(), json!({"a": 12, "b": 18}), "gcd=6".into()));
        assert_eq!(asked[1].messages()[1]["tool_calls"][0]["id"], "c1", "the server's own id stays");
        assert_eq!(reported.details_of("call_finished").len(), 2);
        assert_eq!(reported.details_of("call_started")[1]["name"], "math.gcd");
    }
}

#[tokio::test]
async fn b2_the_texts_of_two_rounds_do_not_run_together() {
    for stream in [true, false] {
        let first = Answer::text("Let me see.").call("c", "add", &json!({"a": 1, "b": 1}));
        let rack = Setup::new().start([first.into(), Answer::text("It is 2.").into()]).await;
        rack.ask(stream).await.expect("Let me see.\n\nIt is 2.");
    }
}

#[tokio::test]
async fn b2_calls_of_one_answer_run_side_by_side_and_keep_their_order() {
    for stream in [true, false] {
        // Each waits for the others, and the first finishes last.
        let barrier = Arc::new(Barrier::new(3));
        let done = Arc::new(tokio::sync::watch::Sender::new(0));
        let mut setup = Setup::bare();
        for (name, needs) in [("first", 2), ("second", 1), ("third", 0)] {
            let (barrier, done) = (Arc::clone(&barrier), Arc::clone(&done));
            setup = setup.plain_tool(name, ToolPolicy::new(), move |_| {
                let (barrier, done) = (Arc::clone(&barrier), Arc::clone(&done));
                async move {
                    within(barrier.wait()).await;
                    within(done.subscribe().wait_for(|done| *done >= needs)).await.unwrap();
                    done.send_modify(|done| *done += 1);
                    Ok(ToolResult::new(format!("{name} is done")))
                }
            });
        }
        let calls = Answer::new()
            .call("1", "first", &json!({}))
            .say("<tool_call>{\"name\": \"second\", \"arguments\": {}}</tool_call>")
            .call("3", "third", &json!({}));
        let rack = setup.start([calls.into(), Answer::text("All.").into()]).await;
        let reported = rack.ask(stream).await;
        reported.expect("All.");
        let results: Vec<String> = paired(&rack.upstream.asked()[1])
            .into_iter()
            .map(|(name, _, result)| {
                assert_eq!(result, format!("{name} is done"));
                name
            })
            .collect();
        assert_eq!(results.len(), 3);
        let started: Vec<_> =
            reported.details_of("call_started").iter().map(|call| call["name"].clone()).collect();
        assert_eq!(started, results);
        let finished: Vec<_> =
            reported.details_of("call_finished").iter().map(|call| call["name"].clone()).collect();
        assert_eq!(finished, ["third", "second", "first"]);
    }
}

#[tokio::test]
async fn b2_a_tool_is_found_by_its_own_name_and_history_has_the_legal_one() {
    let call = "<tool_call>{\"name\": \"math.gcd\", \"arguments\": {\"a\": 4, \"b\": 6}}</tool_call>";
    let rack = Setup::new().start([Answer::text(call).into(), Answer::text("2").into()]).await;
    rack.ask(true).await.expect("2");
    assert_eq!(
        paired(&rack.upstream.asked()[1])[0],
        ("math_gcd".into(), json!({"a": 4, "b": 6}), "gcd=2".into())
    );
}

#[tokio::test]
async fn b5_native_and_text_calls_leave_the_same_record() {
    let text = "<tool_call>{\"name\": \"add\", \"arguments\": {\"b\": 3, \"a\": 2}}</tool_call>";
    let native = Answer::new().call("c1", "add", &json!({"a": 2, "b": 3}));
    let rack = Setup::new().start([Answer::text(text).into(), native.into(), Answer::text("5").into()]).await;
    rack.ask(true).await.expect("5");
    let records = rack.outcomes();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].arguments_sha256, records[1].arguments_sha256);
    assert_eq!(records[0].origin, Origin::Text("hermes".into()));
    assert_eq!(records[1].origin, Origin::Native);
    assert_ne!(records[0].call_id, records[1].call_id);
    assert!(records.iter().all(|record| record.success == Some(true) && record.user == "ada"));
}

#[tokio::test]
async fn b6_an_unknown_tool_gets_its_nearest_names() {
    for stream in [true, false] {
        let calls = Answer::new()
            .call("1", "ad", &json!({"a": 1, "b": 1}))
            .call("2", "math_gdc", &json!({"a": 1, "b": 1}))
            .call("3", "wholly different!", &json!({}));
        let rack = Setup::new().start([calls.into(), Answer::text("Sorry.").into()]).await;
        rack.ask(stream).await.expect("Sorry.");
        let pairs = paired(&rack.upstream.asked()[1]);
        assert!(pairs[0].2.contains("no tool named `ad`") && pairs[0].2.contains("`add`"), "{}", pairs[0].2);
        assert!(pairs[1].2.contains("`math_gcd`"), "the name it has on the wire: {}", pairs[1].2);
        assert!(!pairs[1].2.contains("math.gcd"), "{}", pairs[1].2);
        assert!(pairs[2].2.contains("no tool named"), "{}", pairs[2].2);
        assert_eq!(pairs[2].0, "wholly_different_", "a server may refuse a history with other names");
        assert!(rack.ran().is_empty());
        assert!(rack.outcomes().iter().all(|record| record.error == Some(ErrorKind::ToolNotFound)));
    }
}

#[tokio::test]
async fn b6_wrong_arguments_are_told_with_place_and_expectation() {
    let calls = Answer::new()
        .call("1", "math_gcd", &json!({"a": "x", "c": 1}))
        .delta(json!({"tool_calls": [{"index": 1, "id": "2", "function": {"name": "add", "arguments": "{\"a\": 1, "}}]}));
    let mended = Answer::new().call("3", "add", &json!({"a": "1", "b": 2}));
    let rack = Setup::new().start([calls.into(), mended.into(), Answer::text("3").into()]).await;
    rack.ask(true).await.expect("3");
    let asked = rack.upstream.asked();
    let pairs = paired(&asked[1]);
    for part in
        ["`math_gcd`", "`a`: \"x\" is not of type \"integer\"", "`b` is missing", "no `c`", "\"a\": integer"]
    {
        assert!(pairs[0].2.contains(part), "{part}: {}", pairs[0].2);
    }
    assert!(pairs[1].2.contains("not valid JSON: EOF"), "{}", pairs[1].2);
    assert!(pairs[1].1.is_object(), "a server may refuse a history with other arguments: {}", pairs[1].1);
    assert_eq!(paired(&asked[2])[0].2, "sum=3", "what is plainly meant is taken");
}
