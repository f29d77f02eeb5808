//! Tools whose schemas break the grammar that the server makes of them.

use serde_json::json;

use super::{CALL, Thread, expect_added};
use crate::support::{Answer, Reply, Setup};

/// <https://github.com/ggml-org/llama.cpp/issues/24658>: the grammar of 22 tools is one that the server cannot parse; without it the model
/// writes several calls in a form of its own, and they reach the client as they are.
#[tokio::test]
async fn b2_calls_that_a_model_writes_without_its_grammar_are_run() {
    let _thread = Thread("https://github.com/ggml-org/llama.cpp/issues/24658");
    let said = concat!(
        "<|tool_call_begin|>functions_add_2<|tool_call_argument_begin|>{\"a\": 2, \"b\": 3}<|tool_call_end|>",
        "<|tool_call_begin|>functions_math_gcd_3<|tool_call_argument_begin|>{\"a\": 12, \"b\": 18}<|tool_call_end|>",
        "<|tool_calls_section_end|>",
    );
    for stream in [true, false] {
        let rack =
            Setup::new().start_of_kind("llama.cpp", [Reply::text(said), Reply::text("5 and 6.")]).await;
        rack.ask(stream).await.expect("5 and 6.");
        // Both at the same time: which begins first is open.
        let mut ran = rack.ran();
        ran.sort_by(|one, other| one.0.cmp(&other.0));
        let expected =
            [("add".to_owned(), json!({"a": 2, "b": 3})), ("math.gcd".to_owned(), json!({"a": 12, "b": 18}))];
        assert_eq!(ran, expected);
    }
}

/// <https://github.com/QwenLM/qwen-code/issues/10520>: the same with a schema, and the server refuses the request.
#[tokio::test]
async fn b15_tools_that_break_the_servers_grammar_are_described_in_the_prompt() {
    let _thread = Thread("https://github.com/QwenLM/qwen-code/issues/10520");
    let refusal = || Reply::error(400, "Failed to initialize samplers: failed to parse grammar");
    for stream in [true, false] {
        let replies = [refusal(), Reply::text(CALL), Reply::text("It is 5."), Answer::text("Hello.").into()];
        let rack = Setup::new().start_of_kind("llama.cpp", replies).await;
        let reported = rack.ask(stream).await;
        expect_added(&rack, &reported, "It is 5.");
        assert!(rack.upstream.asked()[1..].iter().all(|asked| asked.tools().is_empty()));
        // It is these tools, not the model.
        rack.ask(stream).await.expect("Hello.");
        assert_eq!(rack.upstream.asked()[3].tools().len(), 2);
    }
    let rack = Setup::new().start_of_kind("llama.cpp", [refusal(), refusal()]).await;
    let reported = rack.ask(true).await;
    assert_eq!((reported.status, rack.upstream.asked().len()), (400, 2));
    assert!(reported.failure().contains("failed to parse grammar"), "{reported:?}");
}
