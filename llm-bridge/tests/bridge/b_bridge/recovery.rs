//! Model servers that cannot read what their model wrote, or take no tools at all.

use serde_json::json;

use super::faults::{CALL, delta};
use crate::support::{Act, Answer, Reply, Setup, event, text_event};

/// Ollama's and llama.cpp's ways to say that they could not read what the model wrote.
fn unread(raw: &str) -> [String; 2] {
    [
        format!(
            "error parsing tool call: raw='{raw}', err=invalid character 'x' after object key:value pair"
        ),
        format!("Failed to parse input at pos 11: {raw}"),
    ]
}

#[tokio::test]
async fn b2_a_call_that_the_server_could_not_read_is_read_from_its_error() {
    for message in unread(&format!("Let me see.\n{CALL}")) {
        for (stream, reply) in [
            (true, Reply::error(500, &message)),
            (false, Reply::error(500, &message)),
            (true, Reply::stream([event(&json!({"error": {"message": message, "code": 500}}))])),
            (true, Reply::stream([event(&json!({"error": message}))])),
            (true, Reply::stream([Act::Send(format!("{}\n", json!({"error": message})).into_bytes())])),
            (true, Reply::stream([text_event("Let me "), event(&json!({"error": {"message": message}}))])),
        ] {
            let rack = Setup::new().start([reply, Answer::text("5").into()]).await;
            let reported = rack.ask(stream).await;
            reported.expect("Let me see.\n\n5");
            assert_eq!(rack.ran().len(), 1);
            assert_eq!(rack.upstream.asked()[1].messages()[1]["content"], "Let me see.");
        }
    }
}

/// llama.cpp has sent the thinking as such and the beginning of the call already when it fails.
#[tokio::test]
async fn b2_what_was_streamed_before_the_error_is_not_said_twice() {
    for message in unread(&format!("<think>I add.</think>\nLet me see.\n{CALL}")) {
        let reply = Reply::stream([
            event(&delta(&json!({"reasoning_content": "I add."}))),
            text_event("Let me see."),
            event(&delta(
                &json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "add", "arguments": "{\"a\":"}}]}),
            )),
            event(&json!({"error": {"message": message}})),
        ]);
        let rack = Setup::new().start([reply, Answer::text("5").into()]).await;
        let reported = rack.ask(true).await;
        reported.expect("Let me see.\n\n5");
        assert_eq!(reported.reasoning.trim(), "I add.");
        assert_eq!(rack.ran().len(), 1);

        let thinking_only = Reply::stream([
            event(&delta(&json!({"reasoning_content": "I add."}))),
            event(&json!({"error": {"message": message}})),
        ]);
        let rack = Setup::new().start([thinking_only, Answer::text("5").into()]).await;
        let reported = rack.ask(true).await;
        reported.expect("Let me see.\n\n5");
        assert_eq!(reported.reasoning.trim(), "I add.");
    }
}

#[tokio::test]
async fn b2_half_a_call_is_asked_for_once_more() {
    for message in unread("<tool_call>\n{\"name\": \"add\", \"argum") {
        for (stream, reply) in [
            (true, Reply::error(500, &message)),
            (false, Reply::error(500, &message)),
            (true, Reply::stream([event(&json!({"error": {"message": message}}))])),
            (
                true,
                Reply::stream([
                    event(&delta(
                        &json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "add", "arguments": ""}}]}),
                    )),
                    event(&json!({"error": {"message": message}})),
                ]),
            ),
        ] {
            let rack = Setup::new()
                .start([reply.clone(), Answer::text(CALL).into(), Answer::text("5").into()])
                .await;
            rack.ask(stream).await.expect("5");
            assert_eq!((rack.ran().len(), rack.upstream.asked().len()), (1, 3));

            // Twice is enough: what there is is shown.
            let rack = Setup::new().start([reply.clone(), reply]).await;
            let reported = rack.ask(stream).await;
            assert!(reported.content.contains("\"argum"), "{reported:?}");
            assert!(rack.ran().is_empty());
        }
    }
}

/// No server stands between: the text is the model's own.
#[tokio::test]
async fn b2_a_call_that_cannot_be_read_is_asked_for_once_more() {
    let quoted =
        "Let me see. <tool_call>{\"name\":\"add\",\"arguments\":{\"a\":\"say \"2\", \"b\" ok\"}}</tool_call>";
    let harmony =
        "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\":2,\"b\":}<|call|>";
    let half = "<tool_call>\n{\"name\": \"add\", \"argum";
    for stream in [true, false] {
        for (text, seen) in [(quoted, quoted), (harmony, harmony.trim_end_matches("<|call|>")), (half, half)]
        {
            let rack =
                Setup::new().start([Reply::text(text), Answer::text(CALL).into(), Reply::text("5")]).await;
            let reported = rack.ask(stream).await;
            assert!(reported.content.ends_with("\n\n5"), "{text}: {reported:?}");
            assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))], "{text}");
            let asked = rack.upstream.asked();
            let [.., answer, reminder] = asked[1].messages().as_slice() else { panic!("{asked:?}") };
            assert_eq!((&answer["role"], &answer["content"]), (&json!("assistant"), &json!(seen)));
            let reminder = reminder["content"].as_str().unwrap();
            assert!(reminder.starts_with("That call could not be read: "), "{reminder}");
            // What came to nothing is no part of the conversation.
            assert!(
                !asked[2].text.contains("could not be read") && !asked[2].text.contains("ok\\\""),
                "{}",
                asked[2].text
            );

            // Twice is enough: what there is is shown.
            let rack = Setup::new().start([Reply::text(text), Reply::text(text)]).await;
            let reported = rack.ask(stream).await;
            assert_eq!(
                (reported.finish.as_deref(), rack.upstream.asked().len()),
                (Some("stop"), 2),
                "{text}"
            );
            assert!(rack.ran().is_empty());
        }
        // What was cut off would be again, and where there is another call the model sees that this one has no result.
        let cut = Answer::text(half).finish("length");
        let rack = Setup::new().start([cut.into()]).await;
        assert_eq!(rack.ask(stream).await.finish.as_deref(), Some("length"));
        let two = format!("{CALL}\n{quoted}");
        let rack = Setup::new().start([Reply::text(&two), Reply::text("5")]).await;
        assert!(rack.ask(stream).await.content.ends_with('5'));
        assert_eq!(rack.upstream.asked().len(), 2);
    }
}

#[tokio::test]
async fn b2_a_server_without_tools_is_told_them_in_the_prompt_from_then_on() {
    let refusal = || Reply::error(400, "registry.ollama.ai/library/phi:latest does not support tools");
    let rack = Setup::new().start([refusal(), Answer::text(CALL).into(), Answer::text("5").into()]).await;
    rack.ask(true).await.expect("5");
    let asked = rack.upstream.asked();
    assert_eq!((asked.len(), asked[1].body.get("tools")), (3, None));
    let system = asked[1].messages()[0]["content"].as_str().unwrap();
    assert!(system.contains("\"math_gcd\"") && system.contains("<tool_call>"), "{system}");
    let roles: Vec<_> = asked[2].messages().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"], "such a template knows no tool messages");
    assert!(asked[2].messages()[3]["content"].as_str().unwrap().contains("sum=5"));

    rack.upstream.push(Answer::text("Hi."));
    rack.ask(false).await.expect("Hi.");
    assert_eq!(rack.upstream.asked()[3].body.get("tools"), None, "remembered");
    // Another model of the same server may well take tools.
    rack.upstream.push(Answer::text("Hi."));
    rack.ask_with(false, json!({"model": "other"})).await.expect("Hi.");
    assert!(rack.upstream.asked()[4].body.get("tools").is_some());
}

/// A template may refuse the messages with an error that mentions tools. That is no reason to keep the tools of everybody else
/// out of the API's fields.
#[tokio::test]
async fn g2_a_refusal_of_tools_is_remembered_only_after_the_prompt_has_helped() {
    let refusal = || Reply::error(500, "template: no user query found before the tool definitions");
    let broken_off = [text_event("Hi"), event(&json!({"error": {"message": "out of memory"}}))];
    for retry in [refusal(), Reply::error(500, "out of memory"), Reply::stream(broken_off)] {
        let rack = Setup::new().start([refusal(), retry]).await;
        let reported = rack.ask(true).await;
        assert!(!reported.failure().is_empty(), "{reported:?}");
        assert_eq!(rack.upstream.asked()[1].body.get("tools"), None, "tried in the prompt");
        rack.upstream.push(Answer::text("Hi."));
        rack.ask(true).await.expect("Hi.");
        assert!(rack.upstream.asked()[2].body.get("tools").is_some(), "{:?}", rack.upstream.asked()[2].body);
    }
}

/// What the model wrote is not what the server says.
#[tokio::test]
async fn b2_words_of_the_model_are_no_refusal_of_tools() {
    for message in unread(&format!("This template does not support tools.\n{CALL}")) {
        let rack = Setup::new().start([Reply::error(500, &message), Answer::text("5").into()]).await;
        rack.ask(true).await.expect("This template does not support tools.\n\n5");
        assert_eq!(rack.ran().len(), 1);
        assert!(rack.upstream.asked()[1].body.get("tools").is_some());
    }
}

#[tokio::test]
async fn g10_calls_of_an_answer_that_is_asked_for_again_are_not_made() {
    let message = "The model produced output that does not match the expected peg-native format";
    let error = event(&json!({"error": {"code": 500, "message": message, "type": "server_error"}}));
    let first = [text_event("Let me see."), text_event(CALL), error];
    let replies = [Reply::stream(first), Reply::text(CALL), Reply::text("5")];
    let rack = Setup::new().start(replies).await;
    let reported = rack.ask(true).await;
    assert_eq!(reported.content, "Let me see.\n\n5");
    assert_eq!(rack.ran().len(), 1);
    let of_type = |kind: &str| reported.details_of(kind).len();
    // The first is refused, and says so.
    assert_eq!((of_type("call_started"), of_type("call_finished")), (2, 2), "{:?}", reported.details);
}
