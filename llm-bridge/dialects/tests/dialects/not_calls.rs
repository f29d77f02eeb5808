//! Text that comes near to a call and is none, and delimiters that are left over.

use std::sync::Arc;

use crate::common::{expect, offering, read};
use serde_json::{Value, json};
use toolrack_dialects::{Offered, ScanOptions};

fn tools() -> Arc<Offered> {
    let text = json!({"type": "string"});
    offering(json!({
        "find": {"type": "object", "properties": {"text": text}, "required": ["text"]},
        "list": {"type": "object", "properties": {"folder": text}},
    }))
}

fn expect_text(texts: &[&str]) {
    texts.iter().for_each(|text| expect(text, &tools(), &json!([]), text.trim()));
}

#[test]
fn d16_a_call_without_a_delimiter_ends_its_line() {
    expect_text(&[
        "[find(text=\"tides\")](https://example.org/find)",
        "[find(text=\"tides\")] is how to ask.",
        "[find(text=\"tides\")][1]\n\n[1]: https://example.org",
        "{\"name\": \"find\", \"arguments\": {\"text\": \"tides\"}} is the JSON.",
        "[{\"name\": \"find\", \"arguments\": {\"text\": \"tides\"}}] would do.\n",
        "{\"name\": \"find\", \"arguments\": {\"text\": \"tides\"}}, say",
    ]);
    let call = json!([["find", {"text": "tides"}]]);
    let object = "{\"name\": \"find\", \"arguments\": {\"text\": \"tides\"}}";
    for text in ["[find(text=\"tides\")]", object] {
        for (after, content) in
            [("", ""), ("  \r\nSo.", "So."), ("</tool_call>", ""), ("<|im_end|>", ""), ("\n\n- a", "- a")]
        {
            expect(&format!("{text}{after}"), &tools(), &call, content);
        }
    }
    let two = json!([["find", {"text": "tides"}], ["list", {}]]);
    for between in ["; ", ", ", "\n", " ", ""] {
        expect(&format!("{object}{between}{{\"name\": \"list\", \"arguments\": {{}}}}"), &tools(), &two, "");
    }
}

#[test]
fn d17_a_list_of_tools_calls_none() {
    let schema = r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#;
    let tool = format!(r#"{{"type": "function", "function": {{"name": "find", "parameters": {schema}}}}}"#);
    for text in [
        format!("[{tool}]"),
        tool.clone(),
        format!("[{tool}, {tool}]"),
        format!("<tools>\n{tool}\n</tools>"),
        format!("{{\"name\": \"find\", \"parameters\": {schema}}}"),
        format!("<tool_call>{{\"name\": \"find\", \"parameters\": {schema}}}</tool_call>"),
    ] {
        expect(&text, &tools(), &json!([]), &text);
    }
    // A tool may take a schema.
    let offered = offering(json!({"check": {"properties": {"type": {}, "properties": {}}}}));
    let text = r#"{"name": "check", "arguments": {"type": "object", "properties": {}}}"#;
    expect(text, &offered, &json!([["check", {"type": "object", "properties": {}}]]), "");
}

#[test]
fn d18_a_name_alone_calls_no_tool_that_needs_arguments() {
    expect_text(&[
        "{\"name\": \"find\"}",
        "[TOOL_CALLS] 42",
        "The marker is [TOOL_CALLS] before",
        "[TOOL_CALLS] before the name",
    ]);
    expect("{\"name\": \"list\"}", &tools(), &json!([["list", {}]]), "");
    expect("<tool_call>{\"name\": \"find\"}</tool_call>", &tools(), &json!([["find", {}]]), "");
    for text in ["[TOOL_CALLS] 42", "[TOOL_CALLS]42", "It is [TOOL_CALLS] before"] {
        let read = read(text, &Arc::new(Offered::any()), &ScanOptions::default());
        assert_eq!((read.calls.len(), read.content.as_str()), (0, text));
    }
}

#[test]
fn d19_delimiters_that_are_left_over_are_not_shown() {
    let object = "{\"name\": \"find\", \"arguments\": {\"text\": \"tides\"}}";
    let invoke = "<invoke name=\"find\">\n<parameter name=\"text\">tides</parameter>\n</invoke>";
    let step = "<steptml:invoke name=\"find\"><steptml:parameter name=\"text\">tides</steptml:parameter></steptml:invoke>";
    let deep = "<｜tool▁call▁begin｜>find<｜tool▁sep｜>{\"text\": \"tides\"}<｜tool▁call▁end｜>";
    for text in [
        format!("<|tool_call|>[{object}]<|/tool_call|>"),
        format!("<function_call>{object}</function_call>"),
        format!("<function_calls>\n{invoke}\n</function_calls>"),
        format!("<minimax:tool_call>\n{object}\n</minimax:tool_call>"),
        format!("<｜tool_calls_begin｜>{object}<｜tool_calls_end｜>"),
        format!("<｜tool_calls_begin｜>{deep}<｜tool_calls_end｜>"),
        format!(
            "<｜tool▁calls▁begin｜><｜tool_call_begin｜>function<｜tool_sep｜>{step}<｜tool_call_end｜><｜tool▁calls▁end｜>"
        ),
        format!("<tool_calls>\n<tool_call>{object}</tool_call>\n</tool_calls>"),
    ] {
        expect(&text, &tools(), &json!([["find", {"text": "tides"}]]), "");
        let read = read(&format!("See:\n{text}\nSo."), &tools(), &ScanOptions::default());
        assert_eq!(read.content.split_whitespace().collect::<Vec<_>>(), ["See:", "So."]);
    }
    for token in
        ["<|im_end|>", "<|eot_id|>", "</s>", "<|observation|>", "<end_of_turn>", "<|im_end|>\n<|endoftext|>"]
    {
        for text in ["High tide is at six.", "It is <b>high</b>"] {
            let read = read(&format!("{text}{token}"), &tools(), &ScanOptions::default());
            assert_eq!(read.content, text);
            let end = format!("{text} {token} ends it, and `{token}` too; not \"{token}\"");
            assert_eq!(self::read(&end, &tools(), &ScanOptions::default()).content, end);
        }
        expect(
            &format!("<tool_call>{object}</tool_call>\n{token}"),
            &tools(),
            &json!([["find", {"text": "tides"}]]),
            "",
        );
    }
    let code = "```\n</s>\n```\nand `</s>`";
    expect(code, &tools(), &json!([]), code);
    expect("<function_calls> are tags", &tools(), &json!([]), "<function_calls> are tags");
}

#[test]
fn d11_a_name_on_a_line_and_an_object_are_a_call_only_with_arguments_of_the_tool() {
    expect_text(&[
        "find\n{\"pattern\": \"tides\"}",
        "find\n{\"text\": \"tides\", \"depth\": 2}",
        "find\n{}",
        "The fields are:\nlist\n{\"items\": [1, 2]}\n",
        "list\n{\"folder\": \"a\", \"name\": \"find\"}",
    ]);
    let found = json!([["find", {"text": "tides"}]]);
    expect("find\n{\"text\": \"tides\"}", &tools(), &found, "");
    expect("So:\nlist\n{}", &tools(), &json!([["list", {}]]), "So:");
    expect("list\n{\"folder\": \"a\"}", &tools(), &json!([["list", {"folder": "a"}]]), "");
    // A delimiter says what is meant: whoever runs the call answers the model.
    expect("find[ARGS]{\"pattern\": 1}", &tools(), &json!([["find", {"pattern": 1}]]), "");
    // Of a tool without a schema nobody knows the arguments.
    let text = "note\n{\"a\": 1}";
    expect(text, &offering(json!({"note": null})), &json!([]), text);
}

#[test]
fn s2_a_call_in_the_arguments_of_one_that_is_cut_off_is_none() {
    let inner = [
        "<tool_call>\n<function=list>\n<parameter=folder>\n/\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>{\"name\": \"list\", \"arguments\": {}}</tool_call>",
        "<tool_call>list<arg_key>folder</arg_key><arg_value>/</arg_value></tool_call>",
        "<function=list>\n</function>",
        "[TOOL_CALLS]list[ARGS]{}",
        "\n{\"name\": \"list\", \"arguments\": {}}\n",
        "\nlist[ARGS]{}\n",
        "\n```json\n{\"name\": \"list\", \"arguments\": {}}\n```\n",
        "functools[{\"name\": \"list\", \"arguments\": {}}]\n",
    ];
    let outer = [
        "<tool_call>\n<function=find>\n<parameter=text>\n",
        "<tool_call>{\"name\": \"find\", \"arguments\": {\"text\": \"",
        "<tool_call>find<arg_key>text</arg_key><arg_value>",
        "[TOOL_CALLS]find[ARGS]{\"text\": \"",
        "<function=find>\n<parameter=text>\n",
        "{\"name\": \"find\", \"arguments\": {\"text\": \"",
        "[find(text=\"\"\"",
        "<|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{\"text\": \"",
        "<function name=\"find\"><param name=\"text\">",
    ];
    for outer in outer {
        for inner in inner {
            let value = format!("Write {inner} and {inner} to call, as");
            let written =
                if outer.ends_with(": \"") { Value::from(value.as_str()).to_string() } else { value };
            let text = format!("{outer}{}", written.trim_matches('"'));
            // The ends of calls in tags may be those of the outer one, whose own are missing.
            if outer.starts_with('<') && !outer.contains('{') && inner.contains("</") {
                continue;
            }
            let read = read(&text, &tools(), &ScanOptions::default());
            assert_eq!(
                (read.calls.as_slice(), read.content.as_str()),
                ([].as_slice(), text.as_str()),
                "{text}"
            );
        }
    }
    // What stands after the end of a call that could not be read is a call as ever.
    let text = format!("{}tides</tool_call>\n{}", outer[1].replace("{\"text\"", "{\"text\" 1"), inner[1]);
    assert_eq!(read(&text, &tools(), &ScanOptions::default()).calls.len(), 1, "{text}");
}
