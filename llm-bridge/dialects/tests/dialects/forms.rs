//! Calls as models really write them: their delimiters, and where they stand.

use std::sync::Arc;

use crate::common::{expect, offering, read};
use serde_json::{Value, json};
use toolrack_dialects::{Offered, ScanOptions, dialect, parse};

fn tools() -> Arc<Offered> {
    let text = json!({"type": "string"});
    offering(json!({
        "lamp": {"type": "object", "properties": {"room": text, "level": {"type": "integer"}}, "required": ["room"]},
        "clock": {"type": "object", "properties": {}},
    }))
}

fn lamp(room: &str) -> Value {
    json!([["lamp", {"room": room}]])
}

/// Each text gives this call and no text.
fn expect_all<T: AsRef<str>>(texts: &[T], calls: &Value) {
    texts.iter().for_each(|text| expect(text.as_ref(), &tools(), calls, ""));
}

#[test]
fn d6_tags_may_carry_the_suffix_of_a_checkpoint() {
    for suffix in [":opensource", ":3fa9c1", ":v-2_b"] {
        let tags = |text: &str| text.replace('>', &format!("{suffix}>"));
        let one =
            "<tool_call>lamp<tool_sep>\n<arg_key>room</arg_key>\n<arg_value>hall</arg_value>\n</tool_call>";
        let plain = "<tool_call>lamp<arg_key>room</arg_key><arg_value>hall</arg_value></tool_call>";
        for text in [
            format!("<tool_calls>\n{one}\n</tool_calls>"),
            format!("<tool_calls>{plain}</tool_calls>"),
            format!("<think>Dark.</think><tool_calls>{plain}</tool_calls>"),
            plain.to_owned(),
        ] {
            let text = tags(&text);
            expect(&text, &tools(), &lamp("hall"), "");
            let read = read(&format!("On it: {text} Done."), &tools(), &ScanOptions::default());
            assert_eq!(read.content, "On it:  Done.");
            assert_eq!(read.reasoning, if text.contains("think") { "Dark." } else { "" });
        }
        let thought = tags(&format!("<think>{plain}</think>")) + "No.";
        expect(&thought, &tools(), &json!([]), "No.");
        let text = tags("<tool_call>") + " is a tag";
        expect(&text, &tools(), &json!([]), &text);
    }
    expect("<tool_call: x> and <tool_calls:>", &tools(), &json!([]), "<tool_call: x> and <tool_calls:>");
}

#[test]
fn d7_types_and_thinking_in_tags_of_their_own() {
    let key = |name: &str| format!("<ifm|arg_key>{name}</ifm|arg_key>");
    let typed = |kind: &str| format!("<ifm|arg_type>{kind}</ifm|arg_type>");
    let value = |text: &str| format!("<ifm|arg_value>{text}</ifm|arg_value>");
    let call = format!(
        "<ifm|tool_calls><ifm|tool_call>dim{}{}{}{}{}{}</ifm|tool_call></ifm|tool_calls>",
        key("room"),
        typed("string"),
        value("7"),
        key("level"),
        typed("integer"),
        value("7")
    );
    for think in ["think", "think_fast", "think_faster"] {
        let text = format!("<ifm|{think}>Dim it.</ifm|{think}>{call}");
        let read = read(&text, &tools(), &ScanOptions::default());
        assert_eq!((read.reasoning.as_str(), read.content.as_str()), ("Dim it.", ""));
        assert_eq!(read.calls[0].arguments, r#"{"room": "7", "level": 7}"#);
    }
    // What the schema says comes first.
    let text = call.replace("dim", "lamp").replace(">integer<", ">string<");
    expect(&text, &tools(), &json!([["lamp", {"room": "7", "level": 7}]]), "");
}

#[test]
fn d8_an_end_after_the_delimiter_of_arguments_means_none() {
    let none = json!([["clock", {}]]);
    expect_all(
        &[
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|><|tool_call_end|>\
             <|tool_calls_section_end|>",
            "[TOOL_CALLS]clock[ARGS]",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>clock\n```json\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>clock\n<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜><｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ],
        &none,
    );
    let two = "[TOOL_CALLS]clock[ARGS][TOOL_CALLS]lamp[ARGS]{\"room\": \"hall\"}";
    expect(two, &tools(), &json!([["clock", {}], ["lamp", {"room": "hall"}]]), "");
}

#[test]
fn d11_small_slips() {
    expect_all(
        &[
            "<tool_call>\n<function=clock/>\n</tool_call>",
            "<tool_call>clock</arg_value></tool_call>",
            "<|python_tag|>clock.call()",
        ],
        &json!([["clock", {}]]),
    );
    let json = r#"{"name": "lamp", "arguments": {"room": "hall"}}"#;
    expect_all(
        &[
            "<function name=\"lamp\"><param name=\"room\"><![CDATA[hall]]></param></function>".to_owned(),
            "<functionname=\"lamp\"><paramname=\"room\">hall</param></function>".to_owned(),
            "<functionname=\"lamp\"><param name=\"room\">hall</param></function>".to_owned(),
            r#"<|tool_call_begin|>functions.lamp:0<|tool_call_argument_begin|>"{\"room\": \"hall\"}"<|tool_call_end|>"#.to_owned(),
            "<|tool_call>call:lamp(room=\"hall\")<tool_call|>".to_owned(),
            "<|tool_call>call:lamp(room:<|\"|>hall<|\"|>)<tool_call|>".to_owned(),
            "<|python_tag|>lamp.call(room=\"hall\")".to_owned(),
            format!("<tools>{json}</tools>"),
            "‹｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lamp\n```json\n{\"room\": \"hall\"}\n```<｜tool▁call▁end｜>\
             <｜tool▁calls▁end｜>"
                .to_owned(),
            // With the special tokens taken out.
            "lamp[ARGS]{\"room\": \"hall\"}".to_owned(),
            "lamp\n{\"room\": \"hall\"}".to_owned(),
            "lamp<arg_key>room</arg_key><arg_value>hall</arg_value>".to_owned(),
        ],
        &lamp("hall"),
    );
    let marked = "<function name=\"lamp\"><param name=\"room\"><![CDATA[a</param></function> <b>]]></param></function>";
    expect(marked, &tools(), &lamp("a</param></function> <b>"), "");
    for text in [
        "other[ARGS]{\"room\": \"hall\"}",
        "the lamp[ARGS]{}",
        "lamp is on",
        "  lamp\n{\"room\": \"hall\"} so",
        "lamp\n\nlamp",
    ] {
        expect(text, &tools(), &json!([]), text.trim());
    }
}

#[test]
fn d12_a_call_in_thinking_is_read_where_nothing_else_was_written() {
    let call =
        "<tool_call>\n<function=lamp>\n<parameter=room>\nhall\n</parameter>\n</function>\n</tool_call>";
    for text in [
        format!("<think>It is dark.\n{call}\n</think>"),
        format!("<think>It is dark.\n{call}\n</think>\n\n"),
        format!("<think>It is dark.\n{call}\n</think>\n<|im_end|>"),
    ] {
        let read = read(&text, &tools(), &ScanOptions::default());
        assert_eq!(read.calls[0].arguments, r#"{"room": "hall"}"#);
        assert_eq!((read.reasoning.trim(), read.content.trim()), ("It is dark.", ""), "{text}");
    }
    let options = ScanOptions::default().thinking(true);
    let two = read(&format!("Dark.\n{call}\n{call}\n</think>\n"), &tools(), &options);
    assert_eq!((two.calls.len(), two.reasoning.trim()), (2, "Dark."));
    for text in [
        format!("<think>{call}</think>No."),
        format!("Hm. <think>{call}</think>"),
        format!("<think>{call}</think>{}", call.replace("hall", "attic")),
        format!("<think>{}</think>", call.replace("lamp", "other")),
    ] {
        let read = read(&text, &tools(), &ScanOptions::default());
        assert!(read.calls.iter().all(|call| call.arguments == r#"{"room": "attic"}"#), "{text}: {read:?}");
        assert!(read.reasoning.contains("<function="), "{text}");
    }
}

#[test]
fn d13_a_header_within_a_line_opens_the_call() {
    let call = "<atem:function_calls>\n<atem:invoke name=\"lamp\">\n<atem:parameter name=\"room\">hall</atem:parameter>\n\
                </atem:invoke>\n</atem:function_calls>";
    for text in [
        format!("<|start|>assistant to=self<|message|>It is dark. to=lamp<|message|>{call}<|eom|>"),
        format!("<|start|>assistant to=self<|message|>It is dark. to=lamp{call}<|eom|>"),
    ] {
        let read = read(&text, &tools(), &ScanOptions::default());
        assert_eq!(
            (read.calls.len(), read.reasoning.trim_end(), read.content.as_str()),
            (1, "It is dark.", ""),
            "{text}"
        );
    }
    let text = "It is set to=7, or from=1 to=9.";
    expect(text, &tools(), &json!([]), text);
}

#[test]
fn d15_a_word_within_a_line_opens_calls_to_offered_tools() {
    let call = r#"functools[{"name": "lamp", "arguments": {"room": "hall"}}]"#;
    for text in [format!("I will do it. {call}"), format!("I will do it: {call}\n")] {
        let read = read(&text, &tools(), &ScanOptions::default());
        assert_eq!((read.calls.len(), read.content.trim_end().ends_with("functools")), (1, false), "{text}");
    }
    for text in [
        format!("So: {}", call.replace("lamp", "other")),
        format!("The line `{call}` is a call."),
        format!("Here {call} is the call."),
        "from functools import reduce\nmyfunctools[1]".to_owned(),
    ] {
        assert_eq!(read(&text, &tools(), &ScanOptions::default()).content, text);
    }
    // Outer brackets are missing.
    expect_all(
        &[
            r#"functools[{"name": "lamp", "arguments": {"room": "hall"}}"#,
            r#"functools[{"name": "lamp", "arguments": {"room": "hall"}"#,
            r#"<tool_call>{"name": "lamp", "arguments": {"room": "hall"}"#,
            "{\"name\": \"lamp\", \"arguments\": {\"room\": \"hall\"}\n",
        ],
        &lamp("hall"),
    );
    let cut = r#"functools[{"name": "lamp", "arguments": {"room": "hall""#;
    expect(cut, &tools(), &json!([]), cut);
    let call =
        &parse(r#"<tool_call>{"name": "lamp", "arguments": {}"#, tools(), ScanOptions::default()).calls[0];
    assert!(call.repaired && !call.closed);
}

#[test]
fn b1_a_fence_of_calls_holds_them_as_python_writes_them() {
    let fence = |lines: &str| format!("```tool_code\n{lines}\n```");
    let calls = [
        "lamp(room=\"hall\")",
        "[lamp(room='hall')]",
        "print(lamp(room=\"hall\"))",
        "x = api.lamp(\"hall\")",
    ];
    expect_all(&calls.map(fence), &lamp("hall"));
    let both = json!([["lamp", {"room": "hall"}], ["clock", {}]]);
    expect_all(&[fence("lamp(room=\"hall\")\nclock()")], &both);
    let text = format!("I look.\n{}\n", fence("clock()"));
    expect(&text, &tools(), &json!([["clock", {}]]), "I look.");
    // Other code is shown, and so are calls where nothing says that they are some.
    for text in [
        fence("print(lamp(room=\"hall\").level)"),
        fence("lamp"),
        fence("lamp(room=\"hall\").switch()"),
        fence("lamp(room=\"hall\")\nprint(1)"),
        fence("oven(room=\"hall\")"),
        fence("lamp(room=\"hall\")").replace("tool_code", "python"),
        fence("lamp(room=\"hall\")").replace("tool_code", ""),
    ] {
        expect(&text, &tools(), &json!([]), &text);
    }
}

#[test]
fn b1_white_space_around_a_name_is_not_of_the_name() {
    let json = "{\"name\": \"lamp \", \"arguments\": {\"room\": \"hall\"}}";
    let tags = "<function=lamp >\n<parameter=room>\nhall\n</parameter>\n</function>";
    expect_all(
        &[
            json.to_owned(),
            format!("<tool_call>{json}</tool_call>"),
            format!("<tool_call>{tags}</tool_call>"),
        ],
        &lamp("hall"),
    );
}

#[test]
fn b1_name_and_arguments_may_be_elements_after_any_wrapper() {
    let elements = "<name>lamp</name>\n  <arguments>{\"room\": \"hall\"}</arguments>";
    let wrappers = [
        ("<function_call>", "</function_call>"),
        ("<tool_calls>\n", "\n</tool_calls>"),
        ("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    ];
    let texts = wrappers.map(|(open, close)| format!("{open}{elements}{close}"));
    expect_all(&texts, &lamp("hall"));
}

#[test]
fn d8_arguments_without_a_value_are_empty() {
    let clock = json!([["clock", {}]]);
    for object in ["{\"name\": \"clock\", \"arguments\": }", "{\"name\": \"clock\", \"parameters\":}"] {
        expect_all(&[object.to_owned(), format!("<tool_call>{object}</tool_call>")], &clock);
    }
    // Without a delimiter nothing that has to be there may be missing; and only arguments may be empty.
    for text in [
        "{\"name\": \"lamp\", \"arguments\": }",
        "<tool_call>{\"name\": \"lamp\", \"arguments\": {\"room\": }}</tool_call>",
        "<tool_call>{\"arguments\": {}, \"name\": }</tool_call>",
    ] {
        expect(text, &tools(), &json!([]), text);
    }
}

#[test]
fn b1_what_separates_calls_on_a_line_is_not_shown() {
    let both = json!([["lamp", {"room": "hall"}], ["lamp", {"room": "attic"}]]);
    let call =
        |name: &str, room: &str| format!("{{\"name\": \"{name}\", \"arguments\": {{\"room\": \"{room}\"}}}}");
    for between in ["; ", ", ", ";", " ; "] {
        let text = call("lamp", "hall") + between + &call("lamp", "attic");
        expect(&text, &tools(), &both, "");
        // All that stands on the line is a call, or nothing is.
        for other in
            [format!("{text} is what I would send."), call("lamp", "hall") + between + &call("oven", "attic")]
        {
            expect(&other, &tools(), &json!([]), &other);
        }
    }
}

/// What documents calls of another dialect in a value is that value, though its tags end as those around it do.
#[test]
fn d2_calls_of_another_dialect_in_a_value_are_not_made() {
    let offered = offering(json!({
        "write": {"type": "object", "properties": {"text": {"type": "string"}}},
        "sh": {"type": "object", "properties": {"c": {"type": "string"}}},
    }));
    let qwen = |c: &str| {
        format!("<tool_call>\n<function=sh>\n<parameter=c>\n{c}\n</parameter>\n</function>\n</tool_call>")
    };
    let minicpm = |c: &str| format!("<function name=\"sh\"><param name=\"c\">{c}</param></function>");
    let texts = [qwen("ls"), format!("So:\n{}\n{}\nDone.", qwen("ls"), qwen("rm -r x"))];
    for text in texts {
        let call = format!("<function name=\"write\"><param name=\"text\">{text}</param></function>");
        expect(&call, &offered, &json!([["write", {"text": text}]]), "");
        let two = format!("{call}\n{}", minicpm("pwd"));
        expect(&two, &offered, &json!([["write", {"text": text}], ["sh", {"c": "pwd"}]]), "");
    }
    let text = format!("So:\n{}\n{}", minicpm("ls"), minicpm("rm -r x"));
    let call = format!(
        "<tool_call>\n<function=write>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>"
    );
    expect(&call, &offered, &json!([["write", {"text": text}]]), "");
}

#[test]
fn p8_tags_around_an_answer_are_dropped_where_the_model_is_known() {
    let answer = |tag: &str| format!("<think>ok</think>\n<{tag}>\nHi there\n</{tag}>");
    let only = |name: &str| ScanOptions::default().only(dialect(name).unwrap());
    for (tag, row) in [("answer", "hunyuan_a13b"), ("response", "ernie45")] {
        for (only, content) in [
            (only(row), "Hi there\n".to_owned()),
            (only("hermes"), rest(&answer(tag))),
            (ScanOptions::default(), rest(&answer(tag))),
        ] {
            let read = read(&answer(tag), &tools(), &only);
            assert_eq!((read.content, read.reasoning.as_str()), (content, "ok"), "{only:?}");
        }
        // The opening one in a sentence, and the closing one before more text, are tags like any.
        let text = format!("Say <{tag}> first. </{tag}> comes last.");
        let read = read(&text, &tools(), &only(row));
        assert_eq!(read.content, text);
    }
}

/// The text after the thinking.
fn rest(text: &str) -> String {
    text.split_once("</think>\n").unwrap().1.to_owned()
}
