//! Long results: shortened in their middle, read on by the model, and the oldest first where the context is full. Row B11.

use std::{sync::Arc, time::Duration};

use llm_bridge::{
    turn::{Backend, ChatSettings, ToolStyle},
    upstream::Upstream,
};
use registry_core::{Caller, Permission, ToolPolicy, ToolResult};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolrack_apis::TurnEvent;

use crate::support::{
    Answer, Asked, Rack, Reply, Scripted, Setup, Site, client_tool, question, until, user, within,
};

const LIMIT: usize = 2000;

/// 10,000 characters.
fn lines() -> String {
    (0..1000).map(|line| format!("line {line:04}\n")).collect()
}

/// What a shortened text is found by.
fn id_of(text: &str) -> String {
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// `add`, `math.gcd` and `log`, which gives the lines.
fn setup() -> Setup {
    Setup::new()
        .plain_tool("log", ToolPolicy::new(), |_| async { Ok(ToolResult::new(lines())) })
        .chat(|chat| chat.limits.max_result_characters = LIMIT)
}

fn call(name: &str, arguments: Value) -> Reply {
    Answer::new().call("c", name, &arguments).into()
}

fn last_result(asked: &Asked) -> &str {
    let last = asked.messages().last().unwrap();
    assert_eq!(last["role"], "tool");
    last["content"].as_str().unwrap()
}

/// The character that a shortened result goes on from.
fn from_of(result: &str) -> usize {
    let (_, rest) = result.split_once("\"from\":").unwrap();
    rest.split_once('}').unwrap().0.parse().unwrap()
}

#[tokio::test]
async fn b11_a_long_result_is_shortened_in_its_middle_and_the_model_reads_on() {
    for stream in [true, false] {
        let id = id_of(&lines());
        let rack = setup()
            .start([
                call("log", json!({})),
                call("read_result", json!({"id": id, "from": 1000, "length": 50})),
                call("read_result", json!({"id": id, "from": 9980})),
                Reply::text("Read."),
                Reply::text("Yes."),
            ])
            .await;
        let reported = rack.ask(stream).await;
        reported.expect("Read.");
        assert_eq!(reported.details_of("call_finished")[0]["result"], lines(), "the person sees all");
        let messages =
            json!({"messages": [user("Go."), {"role": "assistant", "content": "Read."}, user("Sure?")]});
        rack.ask_with(stream, messages).await.expect("Yes.");

        let asked = rack.upstream.asked();
        let result = last_result(&asked[1]);
        assert!(result.starts_with("line 0000\n") && result.ends_with("\nline 0999\n"), "{result}");
        assert!(result.chars().count() <= LIMIT && result.len() > LIMIT * 3 / 4, "{}", result.len());
        let from = from_of(result);
        let note = format!("to read on, call read_result with {{\"id\":\"{id}\",\"from\":{from}}}]");
        assert!(result.contains(&note) && lines()[..from] == result[..from], "{result}");
        assert_eq!(
            last_result(&asked[2]),
            format!(
                "[Characters 1000 to 1050]\n{}\n[8950 more characters follow, from 1050]",
                &lines()[1000..1050]
            )
        );
        let end = format!("[Characters 9980 to 10000]\n{}\n[The result ends here.]", &lines()[9980..]);
        assert_eq!(last_result(&asked[3]), end);
        // It is offered once there is something to read on in, also in the turns to come.
        let (before, after) = (["add", "log", "math_gcd"], ["add", "log", "math_gcd", "read_result"]);
        assert_eq!(asked[0].tools(), before);
        assert!(asked[1..].iter().all(|asked| asked.tools() == after));
        assert_eq!(rack.ran(), [("log".to_owned(), json!({}))]);
        let calls: Vec<(String, Option<bool>)> =
            rack.outcomes().into_iter().map(|record| (record.tool, record.success)).collect();
        let audited = ["log", "read_result", "read_result"].map(|tool| (tool.to_owned(), Some(true)));
        assert_eq!(calls, audited, "each on the one path");
        let listed = within(rack.client.get(rack.url("/api/tools")).send()).await.unwrap();
        assert!(!within(listed.text()).await.unwrap().contains("read_result"));
    }
}

#[tokio::test]
async fn b11_nobody_reads_on_in_the_results_of_another_user() {
    let id = id_of(&lines());
    let read = || call("read_result", json!({"id": id}));
    let upstream = Scripted::start([
        call("log", json!({})),
        read(),
        Reply::text("Mine."),
        read(),
        Reply::text("Not mine."),
    ])
    .await;
    let model = Upstream::http(&upstream.base(), None, Duration::from_secs(20)).unwrap();
    let mut chat = ChatSettings::default();
    chat.limits.max_result_characters = LIMIT;
    let backend = Backend::new(setup().registry, model, chat);
    for name in ["ada", "bob"] {
        let mut turn = backend.start(question("Go."), Caller::new(name, Permission::Owner)).unwrap();
        within(async move {
            while let Some(event) = turn.next().await {
                assert!(!matches!(event, TurnEvent::Failed(_)), "{event:?}");
            }
        })
        .await;
    }
    let asked = upstream.asked();
    assert!(last_result(&asked[2]).starts_with("[Characters 0 to "), "{}", last_result(&asked[2]));
    let refused = last_result(&asked[4]);
    assert!(refused.contains("There is no result") && refused.contains("again"), "{refused}");
    assert!(!refused.contains("line 0"));
}

#[tokio::test]
async fn b11_in_a_prompt_the_result_says_how_to_read_on_and_later_the_prompt_does() {
    let id = id_of(&lines());
    let written = |name: &str, arguments: Value| {
        Reply::text(&format!("<tool_call>{}</tool_call>", json!({"name": name, "arguments": arguments})))
    };
    let rack = setup()
        .chat(|chat| chat.tool_style = ToolStyle::Prompt)
        .start([
            written("log", json!({})),
            written("read_result", json!({"id": id, "from": 1000, "length": 50})),
            Reply::text("Read."),
            Reply::text("Yes."),
        ])
        .await;
    rack.ask(true).await.expect("Read.");
    let messages =
        json!({"messages": [user("Go."), {"role": "assistant", "content": "Read."}, user("Sure?")]});
    rack.ask_with(true, messages).await.expect("Yes.");
    let asked = rack.upstream.asked();
    let system = |asked: &Asked| asked.messages()[0]["content"].as_str().unwrap().to_owned();
    assert!(!system(&asked[0]).contains("read_result"));
    assert_eq!(system(&asked[2]), system(&asked[0]), "what the server has read stays");
    assert!(asked[2].text.contains("[Characters 1000 to 1050]"));
    assert!(system(&asked[3]).contains("read_result"));
}

#[tokio::test]
async fn b11_tools_of_that_name_keep_it() {
    // The client's.
    let rack = setup().start([call("log", json!({})), Reply::text("Read.")]).await;
    rack.ask_with(true, json!({"tools": [client_tool("read_result")]})).await.expect("Read.");
    let asked = rack.upstream.asked().pop().unwrap();
    assert!(last_result(&asked).contains("call read_result_2 with"), "{}", last_result(&asked));
    assert_eq!(asked.tools(), ["add", "log", "math_gcd", "read_result_2", "read_result"]);
    // The operator's.
    let rack = setup()
        .plain_tool("read_result", ToolPolicy::new(), |_| async { Ok(ToolResult::new("mine")) })
        .start([call("log", json!({})), call("read_result", json!({})), Reply::text("Read.")])
        .await;
    rack.ask(true).await.expect("Read.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[1].tools(), ["add", "log", "math_gcd", "read_result"]);
    let result = last_result(&asked[1]);
    assert!(result.contains("more characters were left out]") && !result.contains("read_result"), "{result}");
    assert_eq!(last_result(&asked[2]), "mine");
    // None at all.
    let rack = setup().start([Reply::text("Hi.")]).await;
    rack.ask_with(true, json!({"tool_choice": "none"})).await.expect("Hi.");
    assert_eq!(rack.upstream.asked()[0].tools(), [""; 0]);
}

const WORDS: usize = 800;

/// `add`, `math.gcd` and `page(n)`, which gives 4,000 characters, before a server that says how many tokens its context has.
async fn crowded(setup: Setup, context: u64) -> Rack {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let setup = setup.tool("page", schema, ToolPolicy::new(), |_, arguments| async move {
        Ok(ToolResult::new(page(arguments["n"].as_u64().unwrap())))
    });
    let site = Site::of_kind("vllm", &["m"]).with_context("vllm", context);
    let upstream = Scripted::start_as(site, [Reply::text("Hi.")]).await;
    let base = upstream.base();
    let rack = setup.start_before(upstream, &base).await;
    rack.ask(true).await.expect("Hi.");
    until(|| rack.upstream.looked().iter().filter(|path| *path == "/v1/models").count() == 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    rack
}

fn page(number: u64) -> String {
    format!("p{number:03} ").repeat(WORDS)
}

/// The results in a request, oldest first.
fn results(asked: &Asked) -> Vec<&str> {
    let results = asked.messages().iter().filter(|message| message["role"] == "tool");
    results.map(|result| result["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn b11_where_the_context_is_full_the_oldest_results_are_shortened_in_big_steps() {
    let setup = Setup::new().chat(|chat| (chat.limits.max_rounds, chat.limits.max_calls) = (30, 30));
    let rack = crowded(setup, 16_384).await;
    let read = json!({"id": id_of(&page(1)), "from": 2000, "length": 10});
    for number in 1..=18 {
        rack.upstream.push(call("page", json!({"n": number})));
    }
    rack.upstream.push(call("read_result", read));
    rack.upstream.push(Reply::text("Read."));
    let first = json!({"messages": [user("Read all.")]});
    rack.ask_with(true, first).await.expect("Read.");
    rack.upstream.push(Reply::text("Yes."));
    let said = [user("Read all."), json!({"role": "assistant", "content": "Read."}), user("Sure?")];
    rack.ask_with(true, json!({"messages": said})).await.expect("Yes.");

    let asked = &rack.upstream.asked()[1..];
    assert_eq!(asked.len(), 21);
    let (mut changes, mut before) = (0, Vec::new());
    for (at, asked) in asked.iter().enumerate() {
        let results = results(asked);
        assert_eq!(results.len(), at.min(19), "each call has its result");
        let lengths: Vec<usize> = results.iter().map(|result| result.len()).collect();
        let shortened = lengths.iter().take_while(|length| **length <= 800).count();
        let whole = |length: &usize| *length == WORDS * 5 || *length < 100;
        assert!(lengths[shortened..].iter().all(whole), "the oldest first: {lengths:?}");
        // 12,288 tokens are left for the request, and a fifth more are expected than are estimated.
        assert!(lengths.iter().sum::<usize>() / 4 <= 10_240, "{lengths:?}");
        if at > 0 && at < 19 {
            assert_eq!(results[at - 1], page(at as u64), "what was just read is whole");
        }
        changes += usize::from(!asked.messages().starts_with(&before));
        before = asked.messages().clone();
    }
    assert_eq!(
        changes, 4,
        "of 8 rounds beyond the context: what the server has read stays for several rounds"
    );
    let first = results(&asked[20])[0];
    assert!(first.starts_with("p001 p001") && first.contains(&id_of(&page(1))), "{first}");
    assert!(
        results(&asked[19])[18].starts_with("[Characters 2000 to 2010]\np001 p001 \n"),
        "{}",
        results(&asked[19])[18]
    );
}

#[tokio::test]
async fn b15_another_server_shortens_the_same_results_and_reads_on_in_them() {
    let store = Arc::default();
    let setup = || {
        let store = Arc::clone(&store);
        Setup::new().with(|setup| setup.store = store).chat(|chat| {
            (chat.limits.max_rounds, chat.limits.max_calls) = (30, 30);
        })
    };
    let rack = crowded(setup(), 16_384).await;
    for number in 1..=14 {
        rack.upstream.push(call("page", json!({"n": number})));
    }
    rack.upstream.push(Reply::text("Read."));
    rack.ask_with(true, json!({"messages": [user("Read all.")]})).await.expect("Read.");
    let before = rack.upstream.asked().pop().unwrap();
    let other = crowded(setup(), 16_384).await;
    other.upstream.push(call("read_result", json!({"id": id_of(&page(1)), "from": 3990})));
    other.upstream.push(Reply::text("Yes."));
    let said = [user("Read all."), json!({"role": "assistant", "content": "Read."}), user("Sure?")];
    other.ask_with(true, json!({"messages": said})).await.expect("Yes.");
    let asked = other.upstream.asked();
    for field in ["messages", "tools"] {
        let begin = before.raw(field);
        assert!(asked[1].raw(field).starts_with(begin.strip_suffix(']').unwrap()), "{field}");
    }
    assert_eq!(last_result(&asked[2]), "[Characters 3990 to 4000]\np001 p001 \n[The result ends here.]");
}

#[tokio::test]
async fn b11_what_the_client_brings_is_shortened_too_where_it_can_be_read_again() {
    let conversation = || {
        let mut messages = vec![user("Read all.")];
        for number in 1..=7 {
            let (id, arguments) = (format!("call-{number}"), json!({"n": number}).to_string());
            let function = json!({"name": "theirs", "arguments": arguments});
            messages.push(json!({"role": "assistant", "content": null,
                "tool_calls": [{"id": id, "type": "function", "function": function}]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": page(number)}));
        }
        json!({"messages": messages, "tools": [client_tool("theirs")]})
    };
    let rack = crowded(Setup::new(), 8192).await;
    rack.upstream.push(Reply::text("Read."));
    rack.ask_with(true, conversation()).await.expect("Read.");
    let asked = rack.upstream.asked().pop().unwrap();
    let lengths: Vec<usize> = results(&asked).iter().map(|result| result.len()).collect();
    assert!(lengths[0] <= 800 && lengths[6] == WORDS * 5, "{lengths:?}");
    assert!(asked.tools().contains(&"read_result"));
    // Nothing of this server's has a say in a request without its tools.
    rack.upstream.push(Reply::text("Read."));
    let mut plain = conversation();
    plain["model"] = "m:plain".into();
    rack.ask_with(true, plain).await.expect("Read.");
    let asked = rack.upstream.asked().pop().unwrap();
    assert!(results(&asked).iter().all(|result| result.len() == WORDS * 5));
}

#[tokio::test]
async fn b11_one_result_takes_no_more_than_a_quarter_of_the_context() {
    let setup = Setup::new().plain_tool("log", ToolPolicy::new(), |_| async { Ok(ToolResult::new(lines())) });
    let rack = crowded(setup, 8192).await;
    rack.upstream.push(call("log", json!({})));
    rack.upstream.push(Reply::text("Read."));
    rack.ask(true).await.expect("Read.");
    let asked = rack.upstream.asked().pop().unwrap();
    let length = last_result(&asked).chars().count();
    assert!((6000..=8192).contains(&length), "{length}");
}

#[tokio::test]
async fn b11_several_results_of_one_answer_share_the_room_that_is_left() {
    for context in [2048, 4096] {
        let rack = crowded(Setup::new(), context).await;
        let pages = (1..=6).fold(Answer::new(), |answer, number| {
            answer.call(&format!("c{number}"), "page", &json!({"n": number}))
        });
        rack.upstream.push(pages);
        rack.upstream.push(call("read_result", json!({"id": id_of(&page(1)), "from": 0, "length": 10})));
        rack.upstream.push(Reply::text("Read."));
        rack.ask(true).await.expect("Read.");
        let asked = rack.upstream.asked();
        let all = results(&asked[2]);
        assert_eq!(all.len(), 6);
        let characters: usize = all.iter().map(|result| result.len()).sum();
        // About four characters a token, and a quarter is for the answer.
        assert!(characters < 3 * usize::try_from(context).unwrap(), "{context}: {characters}");
        for (number, result) in (1..).zip(&all) {
            assert!(result.starts_with(&format!("p{number:03} p")), "{context}: {result}");
            assert!(result.len() >= 400 && result.contains("to read on, call read_result"), "{result}");
            assert!(result.len().abs_diff(all[0].len()) < 100, "each has the same part");
        }
    }
}

/// Two servers with one store, as one that was started anew.
#[tokio::test]
async fn b11_what_was_left_out_is_there_after_a_restart_for_its_user_alone() {
    let (store, id) = (Arc::default(), id_of(&lines()));
    let start = |user: &'static str, replies: Vec<Reply>| {
        let store = Arc::clone(&store);
        let setup = setup().with(|setup| {
            (setup.store, setup.caller) = (store, Caller::new(user, Permission::Owner));
        });
        setup.start(replies)
    };
    let rack = start("ada", vec![call("log", json!({})), Reply::text("Read.")]).await;
    rack.ask(true).await.expect("Read.");

    let messages =
        json!({"messages": [user("Go."), {"role": "assistant", "content": "Read."}, user("Line 500?")]});
    let reads =
        || vec![call("read_result", json!({"id": id, "from": 5000, "length": 10})), Reply::text("Yes.")];
    let again = start("ada", reads()).await;
    again.ask_with(true, messages.clone()).await.expect("Yes.");
    let asked = again.upstream.asked();
    assert!(asked[0].tools().contains(&"read_result"), "{:?}", asked[0].tools());
    let read = last_result(&asked[1]);
    assert!(read.starts_with("[Characters 5000 to 5010]\nline 0500\n"), "{read}");

    let bobs = start("bob", reads()).await;
    bobs.ask_with(true, messages.clone()).await.expect("Yes.");
    let asked = bobs.upstream.asked();
    assert!(!asked[1].text.contains("line 0500"), "{}", asked[1].text);
}

/// What is longer than what is kept says so where it ends.
#[tokio::test]
async fn b11_the_end_of_what_is_kept_of_a_huge_result_is_not_the_end_of_the_result() {
    let huge: String = (0..1_000_000).map(|line| format!("line {line:06}\n")).collect();
    let kept = format!("{}\n[… 8854352 more characters of the result are not kept]", &huge[..(3 << 20) - 80]);
    let id = id_of(&kept);
    let rack = Setup::new()
        .plain_tool("log", ToolPolicy::new(), move |_| {
            let huge = huge.clone();
            async move { Ok(ToolResult::new(huge)) }
        })
        .chat(|chat| chat.limits.max_result_characters = LIMIT)
        .start([
            call("log", json!({})),
            call("read_result", json!({"id": id, "from": (3 << 20) - 180, "length": 1500})),
            call("read_result", json!({"id": id, "from": 11_000_000})),
            Reply::text("Read."),
        ])
        .await;
    rack.ask(true).await.expect("Read.");
    let asked = rack.upstream.asked();
    let result = last_result(&asked[1]);
    assert!(result.len() <= LIMIT && result.ends_with("\nline 999999\n"), "{result}");
    assert!(result.contains(&id), "{result}");
    let read = last_result(&asked[2]);
    assert!(read.ends_with("8854352 more characters of the result are not kept]"), "{read}");
    let read = last_result(&asked[3]);
    assert!(read.starts_with("[Only the first 31457"), "{read}");
}
