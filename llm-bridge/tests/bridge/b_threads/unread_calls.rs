//! Servers whose own parser fails at what the model wrote, and kills the turn with it.

use serde_json::json;

use super::{CALL, Thread, expect_added};
use crate::support::{Act, Rack, Reply, Setup, event, text_event, within};

/// What llama.cpp says, in an answer of status 500 or in the stream.
const UNREAD: &str = "The model produced output that does not match the expected peg-native format";

fn in_stream(message: &str) -> Act {
    event(&json!({"error": {"code": 500, "message": message, "type": "server_error"}}))
}

fn thought(text: &str) -> Act {
    event(&json!({"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}))
}

/// What the model writes, which its server cannot read: an end of a parameter too many.
const TWO_ENDS: &str = "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n</parameter>\n<parameter=b>\n3\n</parameter>\n</function>\n</tool_call>";

async fn rack_of(replies: impl IntoIterator<Item = Reply>) -> Rack {
    Setup::new().start_of_kind("llama.cpp", replies).await
}

/// <https://github.com/ggml-org/llama.cpp/issues/24807>: `</parameter>` twice; the server drops the call and aborts the stream. In the
/// same thread a parameter is missing, and the abort keeps the model from hearing of it.
#[tokio::test]
async fn g10_a_malformed_call_that_the_server_drops_is_read_here() {
    let _thread = Thread("https://github.com/ggml-org/llama.cpp/issues/24807");
    let dropped = || Reply::stream([thought("I add."), in_stream(UNREAD)]);
    let rack = rack_of([dropped(), Reply::text(TWO_ENDS), Reply::text("It is 5.")]).await;
    let reported = rack.ask(true).await;
    expect_added(&rack, &reported, "It is 5.");

    let incomplete = "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n</function>\n</tool_call>";
    let replies = [dropped(), Reply::text(incomplete), Reply::text(CALL), Reply::text("It is 5.")];
    let rack = rack_of(replies).await;
    let reported = rack.ask(true).await;
    expect_added(&rack, &reported, "It is 5.");
    let asked = rack.upstream.asked();
    let told = asked[2].messages().last().unwrap()["content"].as_str().unwrap();
    assert!(told.contains("`b` is missing"), "{told}");
}

/// <https://github.com/mostlygeek/llama-swap/issues/856>: the same call, and 500 in place of an answer, several times in five minutes.
#[tokio::test]
async fn g10_a_500_in_place_of_a_malformed_call_is_not_the_end() {
    let _thread = Thread("https://github.com/mostlygeek/llama-swap/issues/856");
    for stream in [true, false] {
        let replies = [Reply::error(500, UNREAD), Reply::text(TWO_ENDS), Reply::text("It is 5.")];
        let rack = rack_of(replies).await;
        let reported = rack.ask(stream).await;
        expect_added(&rack, &reported, "It is 5.");
    }
}

/// <https://github.com/ggml-org/llama.cpp/issues/26381>: a broken backend makes the model write gibberish, and the server ends it with its
/// error. Nothing can mend that: the user gets the server's words, and the model is not asked for ever.
#[tokio::test]
async fn g10_gibberish_ends_in_the_error_of_the_server() {
    let _thread = Thread("https://github.com/ggml-org/llama.cpp/issues/26381");
    let gibberish = || Reply::stream([text_event("ol ol 。 the ,, ol"), in_stream(UNREAD)]);
    let rack = rack_of([gibberish(), gibberish(), gibberish()]).await;
    let reported = rack.ask(true).await;
    assert!(reported.failure().contains(UNREAD), "{reported:?}");
    assert_eq!((rack.ran().len(), rack.upstream.asked().len()), (0, 2));

    let rack = rack_of([Reply::error(500, UNREAD), Reply::error(500, UNREAD)]).await;
    let reported = rack.ask(false).await;
    assert_eq!(reported.status, 502);
    assert!(reported.failure().contains(UNREAD), "{reported:?}");
}

/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2182>: gpt-oss in LM Studio under Codex; the error of llama.cpp comes wrapped
/// in the words of LM Studio, in the stream.
#[tokio::test]
async fn g10_the_error_is_known_in_the_words_of_lm_studio() {
    let _thread = Thread("https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2182");
    let inner = json!({"code": 500, "message": UNREAD, "type": "server_error"});
    let message = format!("Engine protocol predict stream returned an error: {inner}");
    let wrapped = event(&json!({"error": {"message": message}}));
    let harmony =
        "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 2, \"b\": 3}<|call|>";
    let replies =
        [Reply::stream([thought("I add."), wrapped]), Reply::text(harmony), Reply::text("It is 5.")];
    let rack = Setup::new().start_of_kind("lmstudio", replies).await;
    let body = json!({"model": "m", "stream": true, "input": "2 + 3?"});
    let response = within(rack.client.post(rack.url("/v1/responses")).json(&body).send()).await.unwrap();
    let text = within(response.text()).await.unwrap();
    assert!(text.contains("response.completed") && text.contains("It is 5."), "{text}");
    assert!(!text.contains("peg-native") && !text.contains("<|"), "{text}");
    assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
}

/// <https://github.com/ggml-org/llama.cpp/issues/27733>: a long answer is there, and a `<think>` behind it makes the server throw it away, about
/// twice a day.
#[tokio::test]
async fn g10_where_llama_cpp_cannot_read_its_model_the_tools_are_described_in_the_prompt() {
    let _thread = Thread("https://github.com/ggml-org/llama.cpp/issues/27733");
    for (stream, reply, shown) in [
        (true, Reply::error(500, UNREAD), "5"),
        (false, Reply::error(500, UNREAD), "5"),
        (true, Reply::stream([in_stream(UNREAD)]), "5"),
        (true, Reply::stream([text_event("Let me see."), in_stream(UNREAD)]), "Let me see.\n\n5"),
    ] {
        let failing = [reply, Reply::text(CALL), Reply::text("5")];
        let replies = [failing.clone(), failing.clone(), failing].concat().into_iter();
        let rack = rack_of(replies.chain([Reply::text("Hello.")])).await;
        for turn in 0..3 {
            let reported = rack.ask(stream).await;
            assert_eq!(reported.content, shown);
            assert_eq!(rack.ran().len(), turn + 1);
            let asked = rack.upstream.asked();
            assert_eq!(asked[3 * turn].tools().len(), 2, "one answer may have been at fault itself");
            assert!(asked[3 * turn + 1].tools().is_empty() && asked[3 * turn + 2].tools().is_empty());
        }
        // It has happened in several turns, and has helped, so it is remembered.
        rack.ask(stream).await.expect("Hello.");
        assert!(rack.upstream.asked()[9].tools().is_empty());
    }
    // It has not helped.
    let failing = [Reply::error(500, UNREAD), Reply::error(500, UNREAD)];
    let replies = [failing.clone(), failing.clone(), failing].concat().into_iter();
    let rack = rack_of(replies.chain([Reply::text("Hello.")])).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]});
    for _ in 0..3 {
        assert!(rack.post(&body).await.status().is_server_error());
    }
    rack.ask(true).await.expect("Hello.");
    assert_eq!(rack.upstream.asked()[6].tools().len(), 2);
}
