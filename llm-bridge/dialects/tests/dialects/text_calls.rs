//! P7 and P8: tool calls that a model writes as text, and its thinking.

use std::sync::Arc;

use crate::common::{Dice, Seen, every, lines, offered, parsed, scan};
use serde_json::{Value, json};
use toolrack_dialects::{
    Abort, Offered, OfferedTool, Parsed, ScanOptions, Tag, dialect, parse, strip_thinking,
};

fn tools() -> Arc<Offered> {
    let schema = json!({"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}}});
    Arc::new(Offered::new(["weather", "search"].map(|name| OfferedTool::new(name).schema(schema.clone()))))
}

/// Reads the text whole and in pieces, and asks that it makes no difference.
fn read(text: &str) -> Parsed {
    read_with(text, &tools(), &ScanOptions::default())
}

fn read_with(text: &str, offered: &Arc<Offered>, options: &ScanOptions) -> Parsed {
    let whole = scan(text, &[], offered, options);
    assert_eq!(crate::common::rebuilt(&whole), text);
    for size in [1, 2, 3, 7] {
        assert_eq!(scan(text, &every(text, size), offered, options), whole, "in pieces of {size}: {text}");
    }
    parsed(&whole)
}

fn calls(parsed: &Parsed) -> Vec<(&str, &str)> {
    parsed.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect()
}

#[test]
fn p7_function_style() {
    let body = "<function=weather><parameter=city>Oslo</parameter><parameter=days>3</parameter></function>";
    for text in [body.to_owned(), format!("<tool_call>\n{body}\n</tool_call>")] {
        let parsed = read(&text);
        assert_eq!(calls(&parsed), [("weather", r#"{"city": "Oslo", "days": 3}"#)]);
        assert_eq!(parsed.dialect, Some("qwen3_coder"));
        assert!(!parsed.calls[0].repaired);
        assert_eq!(parsed.calls[0].source, text);
    }
}

#[test]
fn p7_tool_call_json() {
    let parsed = read(
        "Looking.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\":  \"Oslo\"}}\n</tool_call>\nDone.",
    );
    assert_eq!(calls(&parsed), [("weather", r#"{"city":  "Oslo"}"#)]);
    assert_eq!(parsed.content, "Looking.\n\nDone.");
    assert_eq!(parsed.dialect, Some("hermes"));
}

#[test]
fn p7_bare_json() {
    for text in [
        r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#,
        r#"[{"name": "weather", "parameters": {"city": "Oslo"}}]"#,
        "```json\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```",
        "```\n[{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}]\n```",
        r#"{"type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}}"#,
    ] {
        let parsed = read(text);
        assert_eq!(calls(&parsed), [("weather", r#"{"city": "Oslo"}"#)], "{text}");
        assert_eq!(parsed.dialect, Some("bare_json"));
        assert_eq!(parsed.content, "");
    }
    let parsed = read(
        "Sure:\n{\"name\": \"search\", \"arguments\": {}}; {\"name\": \"weather\", \"arguments\": {}}\nok",
    );
    assert_eq!(calls(&parsed), [("search", "{}"), ("weather", "{}")]);
    assert_eq!(calls(&read("{\"name\": \"search\"}")), [("search", "{}")]);
}

#[test]
fn p7_what_is_no_bare_call_is_text() {
    for text in [
        r#"{"name": "unknown", "arguments": {"city": "Oslo"}}"#,
        r#"{"name": "weather", "arguments": {"city": "Oslo"}, "colour": "red"}"#,
        r#"{"name": "weather", "arguments": 5}"#,
        r#"{"name": "weather", "arguments": {"city": "Oslo"#,
        r#"The user wrote: {"name": "weather", "arguments": {}}"#,
        "```json\n{\"name\": \"weather\", \"arguments\": {}}\n// and so on\n```\n",
        "```rust\n{\"name\": \"weather\", \"arguments\": {}}\n```\n",
        "{\"name\": \"search\"} is what I have",
        "[1] and [2]",
        "[{\"a\": 1}]",
        "{\n  \"name\": \"package\",\n  \"version\": \"1\"\n}",
    ] {
        let parsed = read(text);
        assert_eq!(parsed.calls, [], "{text}");
        assert_eq!(parsed.content, text);
    }
}

#[test]
fn p7_earlier_format_wins() {
    let xml =
        "<function=weather><parameter=city>{\"name\": \"search\", \"arguments\": {}}</parameter></function>";
    let parsed = read(xml);
    assert_eq!(calls(&parsed), [("weather", r#"{"city": "{\"name\": \"search\", \"arguments\": {}}"}"#)]);
    let json =
        r#"<tool_call>{"name": "search", "arguments": {"q": "<function=weather></function>"}}</tool_call>"#;
    assert_eq!(calls(&read(json)), [("search", r#"{"q": "<function=weather></function>"}"#)]);
}

#[test]
fn p7_several_calls_keep_the_text_between() {
    let call = |city: &str| {
        format!("<tool_call>{{\"name\":\"weather\",\"arguments\":{{\"city\":\"{city}\"}}}}</tool_call>")
    };
    let parsed = read(&format!("One {} two {} three", call("Oslo"), call("Rome")));
    assert_eq!(calls(&parsed), [("weather", r#"{"city":"Oslo"}"#), ("weather", r#"{"city":"Rome"}"#)]);
    assert_eq!(parsed.content, "One  two  three");
    let many = read(
        "<tool_call>[{\"name\":\"search\",\"arguments\":{}},{\"name\":\"weather\",\"arguments\":{}}]</tool_call>",
    );
    assert_eq!(calls(&many), [("search", "{}"), ("weather", "{}")]);
    let cut = read("[{\"name\":\"search\",\"arguments\":{}}, {\"name\":\"weath");
    assert_eq!(calls(&cut), [("search", "{}")]);
    assert_eq!(cut.content, ", {\"name\":\"weath");
    let lines = read(
        "<tool_call>\n{\"name\":\"search\",\"arguments\":{}}\n{\"name\":\"weather\",\"arguments\":{}}\n</tool_call>",
    );
    assert_eq!(calls(&lines), [("search", "{}"), ("weather", "{}")]);
}

#[test]
fn p7_a_mark_that_is_mentioned_is_text() {
    for text in [
        "The <tool_call> tag opens a call.",
        "Write `<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>` to call.",
        "It looks like \"<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>\" then.",
        "For example:\n```xml\n<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>\n```\n",
        "<tool_call>not even json</tool_call>",
        "<function=weather> is how it starts",
        "<tool_call>\n<function>\n<parameter=city>x</parameter>\n</function>\n</tool_call>",
        "a `<think>` tag in prose `</think>`",
        "a \"<think>\" tag in prose",
    ] {
        let parsed = read(text);
        assert_eq!(parsed.calls, [], "{text}");
        assert_eq!(parsed.content, text);
    }
}

#[test]
fn p7_a_fence_around_the_whole_answer() {
    let parsed = read("```xml\n<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>\n```\n");
    assert_eq!(calls(&parsed), [("weather", "{}")]);
    assert_eq!(parsed.content, "\n");
    let inside = read("<tool_call>\n```json\n{\"name\": \"weather\", \"arguments\": {}}\n```\n</tool_call>!");
    assert_eq!(calls(&inside), [("weather", "{}")]);
    assert_eq!(inside.content, "!");
    let thought = read("<think>a</think>\n```\n<tool_call>{\"name\": \"weather\"}</tool_call>\n```");
    assert_eq!(calls(&thought), [("weather", "{}")]);
    let inside = read("<tool_call>\n```json\n{\"name\": \"weather\", \"arguments\": {}}\n```\n</tool_call>!");
    assert_eq!(calls(&inside), [("weather", "{}")]);
    assert_eq!(inside.content, "!");
    let thought = read("<think>a</think>\n```\n<tool_call>{\"name\": \"weather\"}</tool_call>\n```");
    assert_eq!(calls(&thought), [("weather", "{}")]);
}

#[test]
fn p7_marked_call_to_a_tool_that_was_not_offered() {
    let parsed = read("<tool_call>{\"name\": \"forecast\", \"arguments\": {}}</tool_call>");
    assert_eq!(calls(&parsed), [("forecast", "{}")]);
    let text = "<tool_call>{\"name\": \"forecast\", \"arguments\": {}}</tool_call>";
    assert_eq!(read_with(text, &Arc::new(Offered::none()), &ScanOptions::default()).content, text);
}

#[test]
fn p7_missing_ends() {
    for text in [
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}",
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"</tool_call>",
        "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</function>\n</tool_call>",
        "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>",
        "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</tool_call>",
        "<function=weather>\n<parameter=city>\nOslo\n</function>\n</tool_call>\n</tool_call>",
    ] {
        assert_eq!(calls(&read(text)), [("weather", r#"{"city": "Oslo"}"#)], "{text}");
    }
    // Of arguments that were cut off, as here before their bracket, nobody knows what was to come.
    let text = "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"";
    assert_eq!((calls(&read(text)), read(text).content.as_str()), (vec![], text));
    let text = "<function=weather><parameter=city>\nOslo\n<parameter=days>\n3\n</parameter></function>";
    assert_eq!(calls(&read(text)), [("weather", r#"{"city": "Oslo", "days": 3}"#)]);
}

#[test]
fn p7_cut_off_inside_an_argument_is_no_call() {
    for text in [
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Os",
        "<tool_call>\n<function=weather>\n<parameter=city>\nOs",
        "<function=weather>",
    ] {
        let seen = scan(text, &[], &tools(), &ScanOptions::default());
        let parsed = read(text);
        assert_eq!(parsed.calls, []);
        assert_eq!(parsed.content, text);
        let aborted =
            |event: &Seen| matches!(event, Seen::Aborted(0, source, Abort::Incomplete) if source == text);
        assert!(seen.iter().any(aborted), "{seen:?}");
    }
}

#[test]
fn p7_repairs_are_flagged() {
    for (body, arguments) in [
        (r#"{"name": "weather", "arguments": {"city": "Oslo",}}"#, r#"{"city": "Oslo"}"#),
        ("{'name': 'weather', 'arguments': {'city': 'Oslo', 'on': True}}", r#"{"city": "Oslo", "on": true}"#),
        ("{\"name\": \"weather\", \"arguments\": {\"city\": \"Os\nlo\"}}", r#"{"city": "Os\nlo"}"#),
        (r#"{name: "weather", arguments: {city: "Oslo"}}"#, r#"{"city": "Oslo"}"#),
        (r#"{"name": "weather", "arguments": {"city": "the "big" one"}}"#, r#"{"city": "the \"big\" one"}"#),
        (r#"{"name": "weather", "arguments": {"city": "5" pipe"}}"#, r#"{"city": "5\" pipe"}"#),
        (
            "{\"name\": \"weather\", // it's the one\n \"arguments\": {\"city\": \"Oslo\"}}",
            r#"{"city": "Oslo"}"#,
        ),
    ] {
        let parsed = read(&format!("<tool_call>{body}</tool_call>"));
        assert_eq!(calls(&parsed), [("weather", arguments)], "{body}");
        assert!(parsed.calls[0].repaired);
    }
    let text = r#"<tool_call>{"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}</tool_call>"#;
    let parsed = read(text);
    assert_eq!(calls(&parsed), [("weather", r#"{"city": "Oslo"}"#)]);
    assert!(!parsed.calls[0].repaired);
}

#[test]
fn p7_values_keep_their_white_space_and_marks() {
    for (value, kept) in [
        ("\n\n", ""),
        ("\n\n\n\n", "\n\n"),
        ("  x ", "  x "),
        ("\r\nx\r\n", "x"),
        ("a <b> & &lt; </parameterx>", "a <b> & &lt; </parameterx>"),
        ("\n<tool_call>\n", "<tool_call>"),
        ("\necho <think>hi</think>\n", "echo <think>hi</think>"),
        ("\n<function=f><parameter=fake>data\n", "<function=f><parameter=fake>data"),
    ] {
        let text = format!(
            "<tool_call>\n<function=weather>\n<parameter=city>{value}</parameter>\n</function>\n</tool_call>"
        );
        let parsed = read(&text);
        let arguments: Value = serde_json::from_str(&parsed.calls[0].arguments).unwrap();
        assert_eq!(arguments, json!({"city": kept}), "{text}");
    }
}

fn tagged(strip: bool) -> Arc<Offered> {
    let schema = Arc::new(json!({"properties": {"count": {"type": "integer"}, "topic": {"type": "string"}}}));
    let tool = |name: &str, pattern: Option<&str>, groups: &[&str]| {
        let mut tag = Tag::new(name.to_uppercase());
        tag.arg_pattern = pattern.map_or(tag.arg_pattern, str::to_owned);
        tag.arg_groups = groups.iter().map(|&group| group.to_owned()).collect();
        tag.strip_from_display = strip;
        OfferedTool::new(name).schema(Arc::clone(&schema)).tag(tag)
    };
    Arc::new(Offered::new([
        tool("research", None, &["topic"]),
        tool("learning", Some(r"(factual|communication)\s+(\d+)"), &["topic", "count"]),
    ]))
}

#[test]
fn p7_tag_lines() {
    let text = "Let me see.\nRESEARCH: ocean tides\nLEARNING: factual 42\nLEARNING: nonsense\nBye RESEARCH: x\nRESEARCH: y";
    let parsed = read_with(text, &tagged(true), &ScanOptions::default());
    assert_eq!(
        calls(&parsed),
        [
            ("research", r#"{"topic": "ocean tides"}"#),
            ("learning", r#"{"topic": "factual", "count": 42}"#),
            ("research", r#"{"topic": "y"}"#)
        ]
    );
    assert_eq!(parsed.content, "Let me see.\nLEARNING: nonsense\nBye RESEARCH: x\n");
    let shown = read_with(text, &tagged(false), &ScanOptions::default());
    assert_eq!(shown.content, text);
    assert_eq!(shown.calls.len(), 3);
    let fenced = "```\nRESEARCH: x\n```\n<think>\nRESEARCH: y\n</think>";
    assert_eq!(read_with(fenced, &tagged(true), &ScanOptions::default()).calls, []);
}

#[test]
fn p8_thinking_is_kept_apart() {
    for (open, close) in [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<reasoning>", "</reasoning>"),
        ("[THINK]", "[/THINK]"),
        ("<seed:think>", "</seed:think>"),
        ("<|channel>thought\n", "<channel|>"),
    ] {
        let parsed = read(&format!(
            "{open}\nHm, <tool_call>{{\"name\":\"weather\",\"arguments\":{{}}}}</tool_call> no.{close}\n\nAnswer."
        ));
        assert_eq!(
            parsed.reasoning,
            "Hm, <tool_call>{\"name\":\"weather\",\"arguments\":{}}</tool_call> no."
        );
        assert_eq!(parsed.content, "Answer.");
        assert_eq!(parsed.calls, []);
    }
}

#[test]
fn p8_thinking_begun_in_the_prompt() {
    let options = ScanOptions::default().thinking(true);
    for text in ["Hm.</think>\n\nAnswer.", "<think>Hm.</think>Answer.", "Hm.</think>Answer."] {
        let parsed = read_with(text, &tools(), &options);
        assert_eq!((parsed.reasoning.as_str(), parsed.content.as_str()), ("Hm.", "Answer."), "{text}");
    }
    let parsed = read("Hm.</think>Answer.");
    assert_eq!(parsed.content, "Hm.Answer.");
}

#[test]
fn s2_thinking_counts_wherever_it_stands_outside_code() {
    let call = "<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>";
    for (text, content, reasoning) in [
        (format!("Hi <think>maybe\n{call}\n</think>No."), "Hi No.", format!("maybe\n{call}\n")),
        (format!("Hi <think>{call}</think> No."), "Hi No.", call.to_owned()),
        ("Hi<think>a</think> there".to_owned(), "Hi there", "a".to_owned()),
        (
            "One <thinking>a</thinking>two <think>b</think>\nthree".to_owned(),
            "One two three",
            "ab".to_owned(),
        ),
        ("x</think>answer".to_owned(), "xanswer", String::new()),
        ("<think>a</think></think>b".to_owned(), "b", "a".to_owned()),
        (
            "Hi <think>RESEARCH: x\nRESEARCH: y\n</think>No.".to_owned(),
            "Hi No.",
            "RESEARCH: x\nRESEARCH: y\n".to_owned(),
        ),
    ] {
        for (offered, size) in [(tools(), 1), (tools(), 3), (tools(), 1000), (tagged(true), 1000)] {
            let parsed = parsed(&scan(&text, &every(&text, size), &offered, &ScanOptions::default()));
            assert_eq!(parsed.calls, [], "{text}");
            assert_eq!((parsed.content.as_str(), &parsed.reasoning), (content, &reasoning), "{text}");
        }
    }
    // In code it is shown, and calls after it are what they are.
    for text in ["`x</think>` y", "```\na <think>b</think>\n```\n", "<code><think></code> b"] {
        assert_eq!(read(text).content, text);
    }
    assert_eq!(calls(&read(&format!("Hi <think>a</think>{call}"))), [("weather", "{}")]);
}

#[test]
fn s2_stripping_takes_thinking_that_the_prompt_has_begun() {
    for (text, stripped) in [
        ("x</think>answer", "answer"),
        ("x\n</think>\n\nanswer <think>y</think>z", "answer z"),
        ("<think>x</think>answer</think>", "answer"),
        ("answer <think>x</think>", "answer "),
        ("`</think>` answer", "`</think>` answer"),
    ] {
        assert_eq!(strip_thinking(text), stripped, "{text}");
    }
}

#[test]
fn s6_a_tag_line_begins_where_its_line_begins() {
    for text in [
        "  RESEARCH: x\n",
        "\tRESEARCH: x\nb",
        "Code:\n\n    RESEARCH: x\n    y\n",
        "- a\n  RESEARCH: x\nb",
        "<think>a</think> RESEARCH: x\nb",
        "Hi <think>a</think>RESEARCH: x\nb",
        "RESEARCH:x\n",
    ] {
        for size in [1, 2, 1000] {
            let read = parsed(&scan(text, &every(text, size), &tagged(true), &ScanOptions::default()));
            assert_eq!(read.calls, [], "{text}");
            let seen = text.replace("<think>a</think> ", "").replace("<think>a</think>", "");
            assert_eq!(read.content, seen, "{text}");
        }
    }
    // Nothing of a stripped line is left after.
    for (text, content) in [
        ("a\nRESEARCH: x\n    b", "a\n    b"),
        ("a\r\nRESEARCH: x\r\nRESEARCH: \ty\nb", "a\r\nb"),
        ("<think>a</think>RESEARCH: x\n\nb", "\nb"),
        ("<think>a</think>\nRESEARCH: x", ""),
    ] {
        for size in [1, 2, 1000] {
            let read = parsed(&scan(text, &every(text, size), &tagged(true), &ScanOptions::default()));
            assert_eq!(read.content, content, "{text}");
            assert_eq!(read.calls[0].name, "research", "{text}");
        }
    }
}

#[test]
fn p8_thinking_left_open() {
    let parsed = read("<think>Hm, and so on");
    assert_eq!((parsed.reasoning.as_str(), parsed.content.as_str()), ("Hm, and so on", ""));
    let call = "<tool_call>{\"name\":\"weather\",\"arguments\":{}}</tool_call>";
    let parsed = read(&format!("<think>I will call. {call}\n{call}\n"));
    assert_eq!(calls(&parsed), [("weather", "{}"), ("weather", "{}")]);
    assert_eq!(parsed.reasoning, "I will call. ");
    let weighed = format!("I could call. {call}\n{call} But I wait.");
    let parsed = read(&format!("<think>{weighed}"));
    assert_eq!((parsed.reasoning.as_str(), calls(&parsed)), (weighed.as_str(), vec![]));
    let parsed = read("<think>Hm <tool_call>{\"name\":\"nobody\",\"arguments\":{}}</tool_call>");
    assert_eq!(parsed.calls, []);
    let bare = "<think>Plan: <function=weather><parameter=city>x</parameter></function> Done.";
    assert_eq!(read(bare).calls, []);
}

#[test]
fn p8_calls_after_thinking() {
    let text = "<think>a</think>Here: <tool_call>{\"name\":\"weather\",\"arguments\":{}}</tool_call><think>b</think>Done.";
    let parsed = read(text);
    assert_eq!(calls(&parsed), [("weather", "{}")]);
    assert_eq!((parsed.reasoning.as_str(), parsed.content.as_str()), ("ab", "Here: Done."));
}

#[test]
fn p7_deltas_are_the_arguments() {
    let options = ScanOptions::default().deltas(true);
    for text in [
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo \\u00e5\", \"days\": 3, \"tags\": [1, true]}}</tool_call>",
        "<function=weather>\n<parameter=city>\nOs\"lo\nand <b>more\n\n</parameter>\n<parameter=days>3</parameter></function>",
        "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}",
        "{\"arguments\": {\"city\": \"Oslo\"}, \"name\": \"weather\"}",
        "<tool_call>{\"name\": \"weather\", \"arguments\": \"{}\"}</tool_call>",
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\",}}</tool_call>",
    ] {
        for size in [1, 3, 1000] {
            let seen = scan(text, &every(text, size), &tools(), &options);
            let Some(Seen::Call(call)) = seen.iter().find(|event| matches!(event, Seen::Call(_))) else {
                panic!("no call in {text}: {seen:?}")
            };
            let deltas: String = seen
                .iter()
                .filter_map(|event| match event {
                    Seen::Delta(0, part) => Some(part.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(deltas, call.arguments, "{text}");
            assert!(seen.contains(&Seen::Begin(0, "weather".into())));
        }
    }
    let early = "<function=weather><parameter=city>Oslo is a city of";
    let seen = scan(early, &every(early, 4), &tools(), &options);
    assert!(seen.contains(&Seen::Delta(0, "{\"city\": \"Oslo is a city of".into())), "{seen:?}");
    assert!(matches!(&seen[seen.len() - 2], Seen::Aborted(0, source, Abort::Incomplete) if source == early));
}

#[test]
fn p7_a_pinned_dialect_narrows() {
    let options = ScanOptions::default().only(dialect("hermes").unwrap());
    let xml = "<function=weather><parameter=city>x</parameter></function>";
    assert_eq!(parse(xml, tools(), options.clone()).content, xml);
    assert_eq!(parse("<tool_call>{\"name\":\"weather\"}</tool_call>", tools(), options).calls.len(), 1);
}

#[test]
fn p7_a_call_longer_than_the_cap_is_text() {
    let options = ScanOptions::default().max_call_bytes(100);
    let text = format!(
        "<tool_call>{{\"name\":\"weather\",\"arguments\":{{\"city\":\"{}\"}}}}</tool_call>",
        "x".repeat(200)
    );
    assert_eq!(read_with(&text, &tools(), &options).content, text);
}

/// What the cases read as is scored by `cargo xtask corpus`.
#[test]
fn b1_corpus_keeps_every_byte() {
    let mut dice = Dice(0x5eed_1234);
    for case in lines("corpus/dialects") {
        let (id, text) = (&case["id"], case["input"].as_str().unwrap());
        let offered = offered(&case["tools"]);
        for thinking in [false, true] {
            let options = ScanOptions::default().thinking(thinking);
            let whole = scan(text, &[], &offered, &options);
            assert_eq!(crate::common::rebuilt(&whole), text, "{id}");
            for cuts in [every(text, 1), every(text, 3), every(text, 7), dice.cuts(text), dice.cuts(text)] {
                assert_eq!(scan(text, &cuts, &offered, &options), whole, "{id}");
            }
        }
    }
}

#[test]
fn p7_an_array_with_anything_but_calls_is_text() {
    let call = r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#;
    for array in [
        format!(r#"["Here you go", {call}, "and bye"]"#),
        format!("[{call}, 5, true, null]"),
        format!("[{call}, \"text\"]"),
        format!("[{call}, {{\"note\": \"y\"}}]"),
        format!("[{call} and more]"),
        format!("[{call}: {call}]"),
        format!("[{call}, [{call}]]"),
        format!("[\n{call},\n{{\"note\": \"y é\"}},\n{call}\n]"),
        format!("[\n\"a\",\n{call},\ntrue,\n{call}\n]"),
    ] {
        for text in [
            array.clone(),
            format!("Look:\n{array}\nend"),
            format!("<tool_call>{array}</tool_call>"),
            format!("<tool_call>\n{array}\n</tool_call>"),
            format!("```json\n{array}\n```"),
        ] {
            let parsed = read(&text);
            assert_eq!(parsed.calls, [], "{text}");
            assert_eq!(parsed.content, text);
            let deltas = ScanOptions::default().deltas(true);
            assert_eq!(content_of(&text, &deltas), text);
        }
        // What comes after the array is read as ever.
        let after = read(&format!("{array}\n{call}"));
        assert_eq!(after.calls.len(), 1, "{array}");
    }
    for (array, repaired) in [
        (format!("[{call}, {call}]"), false),
        (format!("[{call}, {call},]"), true),
        (format!("[{call} {call}]"), true),
        (format!("[{call}, // the second\n{call}]"), true),
        (format!("[{call}, {call}"), true),
    ] {
        let parsed = read(&format!("<tool_call>{array}</tool_call>"));
        assert_eq!(parsed.calls.len(), 2, "{array}");
        assert!(parsed.calls.iter().all(|call| call.repaired == repaired), "{array}");
    }
    let text = format!("[1,\n<tool_call>{call}</tool_call>");
    assert_eq!(read(&text).calls.len(), 1);
}

fn content_of(text: &str, options: &ScanOptions) -> String {
    parsed(&scan(text, &every(text, 3), &tools(), options)).content
}

#[test]
fn p7_text_between_arguments_is_never_lost() {
    let call = "<function=weather><parameter=city>Oslo</parameter>";
    for text in [
        format!("{call}stray</function>"),
        format!("{call} so <b>x</b>\n<parameter=days>1</parameter></function>"),
        format!("<tool_call>{call}stray</tool_call>"),
    ] {
        let parsed = read(&text);
        assert_eq!(parsed.calls.len(), 1, "{text}");
        assert!(parsed.calls[0].repaired);
        assert_eq!(parsed.calls[0].source, text);
    }
    for after in ["That is it.", "a < b\nand <i>so</i> on"] {
        let parsed = read(&format!("{call}\n{after}"));
        assert_eq!(calls(&parsed), [("weather", r#"{"city": "Oslo"}"#)]);
        assert_eq!(parsed.content, after);
        let parsed = read(&format!("{call}\n{after}{call}</function>"));
        assert_eq!(parsed.calls.len(), 2);
        assert_eq!(parsed.content, after);
    }
    let text = "<function=weather>stray<parameter=city>Oslo</parameter></function>";
    assert_eq!(read(text).content, text);
}

#[test]
fn p7_a_stray_backtick_hides_no_call() {
    let call = "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>";
    let xml = "<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>";
    for call in [call, xml] {
        for (before, after) in [
            ("It's the `weather tool I need. ", ""),
            ("It's the `weather tool I need. ", "\nNot the `other`."),
            ("It's the `", " "),
            ("It is ``", ""),
            ("It is `x` and `y: ", &"z".repeat(3000)),
        ] {
            let text = format!("{before}{call}{after}");
            let parsed = read(&text);
            assert_eq!(calls(&parsed), [("weather", r#"{"city": "Oslo"}"#)], "{text}");
            assert_eq!(parsed.content, format!("{before}{after}"));
            let deltas = ScanOptions::default().deltas(true);
            assert_eq!(read_with(&text, &tools(), &deltas).calls.len(), 1);
        }
        for text in [
            format!("Write `{call}` to call."),
            format!("Write `so: {call} ok` to call."),
            format!("Write ``{call}``."),
            format!("Write `{call}` or `{call}`."),
        ] {
            assert_eq!(read(&text).content, text);
        }
    }
    let text = format!("Write `{call} {call}`.");
    assert_eq!(read(&text).content, text);
    let two = read(&format!("It's `x: {call} {call}\n`{call}`"));
    assert_eq!(two.calls.len(), 2);
    for text in [
        "It's `x: <tool_call>{\"name\": \"nobody\", \"arguments\": {}}</tool_call>",
        "The `<tool_call>` and `<function=weather>` delimiters",
        "The `<tool_call>`\n{\"a\": 1}",
        "`<tool_call>{\"name\": \"weather\", \"arguments\": {}}`</tool_call>",
        "`<tool_call>{\"name\": \"weather\", \"arguments\": {}` begins it",
    ] {
        assert_eq!(read(text).content, text);
        let seen = scan(text, &[], &tools(), &ScanOptions::default());
        assert!(!seen.iter().any(|event| matches!(event, Seen::Aborted(..))), "{text}");
    }
}

/// Cases whose collected form has lost its schema, with the schema of their tests.
#[test]
fn g16_cases_that_lost_their_schema_are_parsed_with_it() {
    let text = |value: &str| {
        format!(
            "<|start|>assistant to=echo<|message|><atem:function_calls>\n<atem:invoke name=\"echo\">\n\
             <atem:parameter name=\"text\">{value}</atem:parameter>\n<atem:parameter name=\"count\">25\
             </atem:parameter>\n<atem:parameter name=\"items\">[1,2]</atem:parameter>\n</atem:invoke>\n\
             </atem:function_calls><|eot|>"
        )
    };
    let m3 = "]<]minimax[>[";
    let elements: String =
        ["tags", "shipping", "note"].map(|name| format!("{m3}<{name}>{m3}</{name}>")).concat();
    let order = format!(
        "{m3}<tool_call>\n{m3}<invoke name=\"create_order\">{elements}{m3}</invoke>\n{m3}</tool_call>"
    );
    let typed = |kind: &str| json!({"type": kind});
    let tool = |name: &str, properties: Value| {
        Arc::new(Offered::new([
            OfferedTool::new(name).schema(json!({"type": "object", "properties": properties}))
        ]))
    };
    let echo = json!({"text": typed("string"), "count": typed("integer"), "items": typed("array")});
    let create = json!({"tags": typed("array"), "shipping": typed("object"), "note": typed("string")});
    for (text, offered, arguments) in [
        (text("true"), tool("echo", echo.clone()), json!({"text": "true", "count": 25, "items": [1, 2]})),
        (text("1,500"), tool("echo", echo), json!({"text": "1,500", "count": 25, "items": [1, 2]})),
        (order, tool("create_order", create), json!({"tags": [], "shipping": {}, "note": ""})),
    ] {
        let parsed = read_with(&text, &offered, &ScanOptions::default());
        let read: Value = serde_json::from_str(&parsed.calls[0].arguments).unwrap();
        assert_eq!(read, arguments, "{text}");
    }
}
