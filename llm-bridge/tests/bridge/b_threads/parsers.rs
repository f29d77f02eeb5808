//! Servers and clients whose parser has to be chosen by hand, before a model whose calls they cannot read without.

use super::{Thread, expect_added};
use crate::support::{Reply, Setup};

/// <https://github.com/block/goose/issues/8269>: behind a router Kimi K2.5 writes some of its calls as text, thoughts before them and half of their
/// special tokens gone, and the work halts; a variable that one has to know of helps.
#[tokio::test]
async fn b2_calls_that_come_as_text_at_times_need_no_switch() {
    let _thread = Thread("https://github.com/block/goose/issues/8269");
    for call in [
        "functions.add:0 <|tool_call_argument_begin|> {\"a\": 2, \"b\": 3}",
        "functions.add:0<|tool_call_argument_begin|>{\"a\": 2, \"b\": 3}<|tool_call_end|>",
        "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{\"a\": 2, \"b\": 3}<|tool_call_end|><|tool_calls_section_end|>",
    ] {
        for stream in [true, false] {
            let said = format!("<think>I have to add them.</think>{call}");
            let rack = Setup::new().start([Reply::text(&said), Reply::text("It is 5.")]).await;
            let reported = rack.ask(stream).await;
            expect_added(&rack, &reported, "It is 5.");
            assert_eq!(reported.reasoning.trim(), "I have to add them.", "{call}");
        }
    }
}

/// <https://github.com/vllm-project/vllm/pull/22386>: gpt-oss without the flags that name its parsers. The server refuses tools, or hands on what the
/// model wrote, as it is or without its special tokens.
#[tokio::test]
async fn b2_gpt_oss_is_read_where_no_parser_is_named() {
    let _thread = Thread("https://github.com/vllm-project/vllm/pull/22386");
    const REFUSAL: &str =
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
    const WRITTEN: &str = concat!(
        "<|channel|>analysis<|message|>I have to add.<|end|><|start|>assistant<|channel|>commentary to=functions.add ",
        "<|constrain|>json<|message|>{\"a\": 2, \"b\": 3}<|call|>",
    );
    const STRIPPED: &str =
        "analysisI have to add.assistantcommentary to=functions.add json{\"a\": 2, \"b\": 3}";
    let answers = ["<|channel|>final<|message|>It is 5.<|return|>", "assistantfinalIt is 5."];
    for (said, answer) in [WRITTEN, STRIPPED].into_iter().zip(answers) {
        for refuses in [true, false] {
            for stream in [true, false] {
                let replies = refuses.then(|| Reply::error(400, REFUSAL)).into_iter();
                let replies = replies.chain([Reply::text(said), Reply::text(answer)]);
                let rack = Setup::new().start_of_kind("vllm", replies).await;
                let reported = rack.ask(stream).await;
                expect_added(&rack, &reported, "It is 5.");
                assert_eq!(reported.reasoning.trim(), "I have to add.", "{said}");
            }
        }
    }
}
