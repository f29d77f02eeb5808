//! A model server with faults: no panic, no hang, no lost text.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Act, Answer, Reply, Reported, Scripted, Setup, event, text_event};

pub(crate) const CALL: &str =
    "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>";

async fn told_of(stream: bool, reply: Reply) -> Reported {
    Setup::new().start([reply]).await.ask(stream).await
}

fn data(json: &Value) -> String {
    format!("data: {json}\n\n")
}

pub(crate) fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish() -> Act {
    event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
}

#[tokio::test]
async fn b2_a_truncated_stream_loses_no_text_and_says_so() {
    for (end, acts) in [("cut", vec![Act::Cut]), ("reset", vec![Act::Reset]), ("end", vec![])] {
        for (text, shown) in [
            ("Once upon a ti", "Once upon a ti"),
            (
                "Sum: <tool_call>\n{\"name\": \"add\", \"argum",
                "Sum: <tool_call>\n{\"name\": \"add\", \"argum",
            ),
            ("Sum: <too", "Sum: <too"),
            ("NOTE: half a li", "NOTE: half a li"),
        ] {
            // What a reset throws away was never received, so the pieces get time to arrive.
            let mut stream: Vec<Act> = text.split_inclusive(' ').map(text_event).collect();
            stream.extend(acts.clone());
            let reported = told_of(true, Reply::stream(stream)).await;
            if end == "reset" {
                assert!(
                    reported.error.is_some() && shown.starts_with(&reported.content),
                    "{end}: {reported:?}"
                );
                continue;
            }
            assert!(
                reported.failure().contains("broke off") || reported.failure().contains("ended"),
                "{end}: {reported:?}"
            );
            assert!(!reported.done);
            // A whole line with a tag is a call, and calls of half an answer are not run.
            if !text.starts_with("NOTE") {
                assert_eq!(reported.content, shown, "{end}");
            }
        }
    }
}

#[tokio::test]
async fn b2_a_truncated_reply_is_a_bad_gateway() {
    for acts in [vec![Act::Cut], vec![Act::Reset], vec![]] {
        let mut all = vec![Act::Send(b"{\"choices\": [{\"message\": {\"content\": \"On".to_vec())];
        all.extend(acts);
        let reply = Reply::Raw { status: 200, kind: "application/json", acts: all };
        let reported = told_of(false, reply).await;
        assert_eq!(reported.status, 502, "{reported:?}");
        assert_eq!(reported.error.as_ref().unwrap()["type"], "upstream_error");
    }
}

#[tokio::test]
async fn b2_a_call_of_a_broken_answer_is_not_run() {
    for last in [Act::Cut, Act::Reset, event(&json!({"error": {"message": "out of memory"}}))] {
        let rack = Setup::new().start([Reply::stream([text_event(CALL), last])]).await;
        let reported = rack.ask(true).await;
        reported.failure();
        assert!(rack.ran().is_empty());
        let (started, finished) =
            (reported.details_of("call_started").len(), reported.details_of("call_finished").len());
        assert_eq!(started, finished, "a page would show it running for ever");
    }
}

#[tokio::test]
async fn b2_an_answer_that_was_finished_survives_a_broken_connection() {
    for last in [Act::Cut, Act::Reset] {
        // The reader has to have the end before the connection is gone.
        let reported = told_of(true, Reply::stream([text_event("All."), finish(), last.clone()])).await;
        if reported.content.is_empty() && matches!(last, Act::Reset) {
            continue;
        }
        reported.expect("All.");
    }
}

#[tokio::test]
async fn b2_done_is_the_end_though_the_connection_stays_open() {
    let done = Act::Send(b"data: [DONE]\n\n".to_vec());
    told_of(true, Reply::stream([text_event("All."), finish(), done, Act::Stall])).await.expect("All.");
}

#[tokio::test]
async fn b2_a_stall_ends_after_the_idle_time() {
    let idle = |setup: &mut Setup| setup.idle = Duration::from_millis(300);
    let rack = Setup::new().with(idle).start([Reply::stream([text_event("Once <tool"), Act::Stall])]).await;
    let reported = rack.ask(true).await;
    assert!(reported.failure().contains("sent nothing"), "{reported:?}");
    assert_eq!(reported.content, "Once <tool");
    rack.upstream.client_gone().await;

    let silent = Reply::Raw { status: 200, kind: "application/json", acts: vec![Act::Stall] };
    let rack = Setup::new().with(idle).start([silent]).await;
    assert_eq!(rack.ask(false).await.status, 504);

    // What was finished before the stall is an answer.
    let rack =
        Setup::new().with(idle).start([Reply::stream([text_event("All."), finish(), Act::Stall])]).await;
    rack.ask(true).await.expect("All.");
}

#[tokio::test]
async fn b2_streams_in_any_shape_are_read() {
    let text = "Grüße ☃!";
    let one = data(&delta(&json!({"content": text})));
    let end = data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    let usual = format!("{one}{end}data: [DONE]\n\n");
    for (shape, body) in [
        ("as usual", usual.clone()),
        ("CRLF", usual.replace('\n', "\r\n")),
        ("comments", format!(": ping\n\n{one}:\n\n: x\n{end}data: [DONE]\n\n")),
        ("no space", usual.replace("data: ", "data:")),
        ("other fields", format!("event: message\nid: 1\nretry: 5\n{one}{end}data: [DONE]\n\n")),
        ("no [DONE]", format!("{one}{end}")),
        ("no last empty line", format!("{one}{}", end.trim_end())),
        ("[DONE] without a finish reason", format!("{one}data: [DONE]\n\n")),
        ("no choices", format!("data: {{\"choices\":[]}}\n\n{one}data: {{}}\n\n{end}")),
        ("garbage", format!("{one}data: nonsense\n\ndata: 3\n\ndata: null\n\n{end}")),
        ("two lines", one.replace("\"choices\":", "\"choices\":\ndata: ") + &end),
    ] {
        for size in [1, 7, usize::MAX] {
            let reported = told_of(true, Reply::bytes(body.as_bytes(), size.min(body.len()))).await;
            assert_eq!(
                (reported.error.as_ref(), reported.content.as_str()),
                (None, text),
                "{shape}, pieces of {size}"
            );
            reported.expect(text);
        }
    }
}

#[tokio::test]
async fn b2_a_whole_answer_to_a_request_for_a_stream_is_read() {
    let whole =
        json!({"choices": [{"message": {"role": "assistant", "content": "All."}, "finish_reason": "stop"}]});
    told_of(true, Reply::json(200, &whole)).await.expect("All.");
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    told_of(true, Reply::body(200, "application/json; charset=utf-8", &pretty)).await.expect("All.");
}

#[tokio::test]
async fn b2_invalid_utf8_does_not_end_the_answer() {
    let mut body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\xfe\xe2\x98b\"}}]}\n\n".to_vec();
    body.extend_from_slice(b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    for size in [1, 1000] {
        let reported = told_of(true, Reply::bytes(&body, size)).await;
        assert!(reported.content.starts_with('a') && reported.content.ends_with('b'), "{}", reported.content);
        assert_eq!(reported.finish.as_deref(), Some("stop"));
    }
    let whole = b"{\"choices\":[{\"message\":{\"content\":\"a\xff\xfeb\"},\"finish_reason\":\"stop\"}]}";
    let reply = Reply::Raw { status: 200, kind: "application/json", acts: vec![Act::Send(whole.to_vec())] };
    told_of(false, reply).await.expect("a\u{fffd}\u{fffd}b");
}

/// A server that cuts a character in two writes each half as an escape that is no character.
#[tokio::test]
async fn b2_half_a_character_does_not_lose_its_piece() {
    let piece = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let body =
        [piece("Good \\ud83d"), piece("\\ude00 day \\\\ud83d"), "data: [DONE]\n\n".to_owned()].concat();
    told_of(true, Reply::bytes(body.as_bytes(), 9)).await.expect("Good \u{fffd}\u{fffd} day \\ud83d");
}

#[tokio::test]
async fn b2_a_huge_event_is_read_and_an_endless_line_is_refused() {
    let text = "lorem ipsum ".repeat(100_000);
    told_of(true, Answer::text(&text).into()).await.expect(text.trim());
    let endless = Reply::stream((0..20).map(|_| Act::Send(vec![b'x'; 1 << 20])));
    assert!(told_of(true, endless).await.failure().contains("16 MiB"));
}

#[tokio::test]
async fn b2_an_answer_without_end_is_cut_off_at_64_mib() {
    // Nothing in it is shown, or kept.
    let filling = event(&delta(&json!({"filling": "x".repeat(1 << 20)})));
    let acts = [text_event("Well. ")].into_iter().chain(std::iter::repeat_n(filling, 70)).chain([Act::Stall]);
    let reported = told_of(true, Reply::stream(acts)).await;
    assert!(reported.failure().contains("64 MiB"), "{reported:?}");
    assert_eq!(reported.content, "Well. ");
}

#[tokio::test]
async fn b2_native_calls_with_faults_are_neither_lost_nor_mixed() {
    let call = |fields: Value| json!({"tool_calls": [fields]});
    let add = |a: i64| json!({"name": "add", "arguments": format!("{{\"a\":{a},\"b\":0}}")});
    for (fault, deltas) in [
        (
            "one index for two",
            vec![
                call(json!({"index": 0, "id": "x", "function": add(1)})),
                call(json!({"index": 0, "id": "y", "function": add(2)})),
            ],
        ),
        (
            "one index for two and no ids",
            vec![
                call(json!({"index": 0, "function": add(1)})),
                call(json!({"index": 0, "function": add(2)})),
            ],
        ),
        (
            "one id for two",
            vec![
                call(json!({"index": 0, "id": "x", "function": add(1)})),
                call(json!({"index": 1, "id": "x", "function": add(2)})),
            ],
        ),
        (
            "no ids",
            vec![
                call(json!({"index": 0, "function": add(1)})),
                call(json!({"index": 1, "function": add(2)})),
            ],
        ),
        (
            "no indices",
            vec![call(json!({"id": "x", "function": add(1)})), call(json!({"id": "y", "function": add(2)}))],
        ),
        ("neither", vec![call(json!({"function": add(1)})), call(json!({"function": add(2)}))]),
        (
            "empty ids",
            vec![
                call(json!({"index": 0, "id": "", "function": add(1)})),
                call(json!({"index": 1, "id": null, "function": add(2)})),
            ],
        ),
        (
            "an object",
            vec![
                call(
                    json!({"index": 0, "id": "x", "function": {"name": "add", "arguments": {"a": 1, "b": 0}}}),
                ),
                call(json!({"index": 1, "id": "y", "function": add(2)})),
            ],
        ),
        (
            "no finish reason of its own",
            vec![
                json!({"tool_calls": [{"index": 0, "id": "x", "function": add(1)}, {"index": 1, "id": "y", "function": add(2)}]}),
            ],
        ),
        (
            "the name in every piece",
            vec![
                call(json!({"index": 0, "id": "x", "function": {"name": "add", "arguments": "{\"a\":1"}})),
                call(json!({"index": 0, "id": "x", "function": {"name": "add", "arguments": ",\"b\":0}"}})),
                call(json!({"index": 1, "function": {"name": "add", "arguments": "{\"a\":2"}})),
                call(json!({"index": 1, "function": {"name": "add", "arguments": ",\"b\":0}"}})),
            ],
        ),
    ] {
        let events = deltas.iter().map(|change| event(&delta(change))).chain([finish()]);
        let rack = Setup::new().start([Reply::stream(events), Answer::text("Done.").into()]).await;
        rack.ask(true).await.expect("Done.");
        let mut ran: Vec<_> = rack.ran().into_iter().map(|(_, arguments)| arguments["a"].as_i64()).collect();
        // Both run at once.
        ran.sort_unstable();
        assert_eq!(ran, [Some(1), Some(2)], "{fault}");
        let asked = rack.upstream.asked();
        let calls = asked[1].messages()[1]["tool_calls"].as_array().unwrap();
        assert_ne!(calls[0]["id"], calls[1]["id"], "{fault}");
    }
}

#[tokio::test]
async fn b2_refusals_become_the_status_of_the_reply() {
    for (theirs, ours) in [(400, 400), (401, 424), (403, 424), (404, 404), (429, 429), (500, 502), (503, 503)]
    {
        for stream in [true, false] {
            let reported = told_of(stream, Reply::error(theirs, "because of the moon")).await;
            assert_eq!(reported.status, ours, "{theirs}");
            assert!(reported.failure().contains("because of the moon"), "{reported:?}");
        }
    }
    let detail = Reply::json(422, &json!({"detail": "no such field"}));
    assert!(told_of(true, detail).await.failure().contains("no such field"));
}

#[tokio::test]
async fn b2_a_page_in_place_of_an_answer_is_told_in_few_words() {
    let page = format!(
        "<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>{}</body></html>",
        "<p>x</p>".repeat(5000)
    );
    for stream in [true, false] {
        let reported = told_of(stream, Reply::body(502, "text/html", &page)).await;
        assert_eq!(reported.status, 502);
        assert!(
            reported.failure().contains("Bad gateway") && reported.failure().len() < 2000,
            "{}",
            reported.failure()
        );
        let reported = told_of(stream, Reply::body(200, "text/html", &page)).await;
        assert_eq!(reported.status, 502, "{reported:?}");
    }
}

#[tokio::test]
async fn b2_no_server_is_told_with_its_address() {
    let (upstream, nobody) =
        (Scripted::start([]).await, tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap());
    let base = format!("http://{}/v1", nobody.local_addr().unwrap());
    drop(nobody);
    let rack = Setup::new().start_before(upstream, &base).await;
    for stream in [true, false] {
        let reported = rack.ask(stream).await;
        assert_eq!(reported.status, 502);
        assert!(
            reported.failure().contains(&base) && reported.failure().contains("Is it running?"),
            "{reported:?}"
        );
    }
}

#[tokio::test]
async fn b2_a_failure_in_a_later_round_ends_the_stream_with_an_error() {
    let first = || Reply::from(Answer::text("I add.").call("c", "add", &json!({"a": 1, "b": 1})));
    let loading = || Reply::error(503, "loading");
    for stream in [true, false] {
        let rack = Setup::new().start([first(), loading(), loading(), loading()]).await;
        let reported = rack.ask(stream).await;
        assert!(reported.failure().contains("loading"), "{reported:?}");
        if stream {
            assert!(reported.content == "I add." && !reported.done);
        } else {
            // SDKs that do not read the header see it by the status.
            assert_eq!((reported.status, reported.should_retry.as_deref()), (424, Some("false")));
        }
        assert_eq!((rack.ran().len(), rack.upstream.asked().len()), (1, 4));
    }
}

/// An SDK that repeats a request after a failure would have the tools run again.
#[tokio::test]
async fn g3_a_model_server_that_is_away_after_tools_have_run_is_asked_again_here() {
    for stream in [true, false] {
        let first = Answer::new().call("c", "add", &json!({"a": 1, "b": 1}));
        let rack = Setup::new().start([first.into(), Reply::error(503, "loading"), Reply::text("2")]).await;
        rack.ask(stream).await.expect("2");
        assert_eq!((rack.ran().len(), rack.upstream.asked().len()), (1, 3));
    }
}

#[tokio::test]
async fn g9_an_event_that_is_not_json_is_no_gap_in_the_answer() {
    let broken = Act::Send(b"data: {\"choices\": [{\n\n".to_vec());
    let reported = told_of(true, Reply::stream([text_event("On"), broken, text_event("ce")])).await;
    assert_eq!(reported.content, "On");
    assert!(reported.failure().contains("not JSON"), "{reported:?}");
}
