//! Arguments as models really write them: their ends, their types and their literals.

use std::sync::Arc;

use crate::common::{expect, offering, read};
use serde_json::{Value, json};
use toolrack_dialects::{Offered, ScanOptions};

/// Tools whose arguments are text, and one with numbers.
fn tools() -> Arc<Offered> {
    let text = json!({"type": "string"});
    let one = |name: &str| json!({"type": "object", "properties": {name: text}});
    offering(json!({
        "shell": one("line"),
        "now": {"type": "object", "properties": {}},
        "note": {"type": "object", "properties": {"file": text, "body": text}},
        "dial": {"type": "object", "properties": {
            "number": {"type": "integer"}, "share": {"type": "number"}, "label": {"type": ["string", "integer"]}}},
        "store": {"type": "object", "properties": {"entry": {"description": "anything"}, "body": text}},
    }))
}

/// Each text gives these calls and no text.
fn expect_calls(cases: &[(&str, Value)]) {
    for (text, calls) in cases {
        expect(text, &tools(), calls, "");
    }
}

#[test]
fn d1_the_end_of_a_call_ends_a_value_before_the_next_call() {
    let both = json!([["shell", {"line": "df -h"}], ["shell", {"line": "free -m"}]]);
    expect_calls(&[
        (
            "<tool_call>\n<function=shell>\n<parameter=line>\ndf -h\n</tool_call>\n<tool_call>\n<function=shell>\n\
             <parameter=line>\nfree -m\n</parameter>\n</function>\n</tool_call>",
            both.clone(),
        ),
        (
            "<tool_call>\n<function=shell>\n<parameter=line>\ndf -h\n</function>\n<function=shell>\n<parameter=line>\n\
             free -m\n</function>\n</tool_call>",
            both.clone(),
        ),
        (
            "<tool_call>shell<arg_key>line</arg_key><arg_value>df -h</tool_call>\n<tool_call>shell<arg_key>line</arg_key>\
             <arg_value>free -m</arg_value></tool_call>",
            both.clone(),
        ),
        (
            "<minimax:tool_call>\n<invoke name=\"shell\">\n<parameter name=\"line\">df -h\n</invoke>\n<invoke name=\"shell\">\n\
             <parameter name=\"line\">free -m</parameter>\n</invoke>\n</minimax:tool_call>",
            both.clone(),
        ),
        (
            "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"shell\">\n<｜DSML｜parameter name=\"line\" string=\"true\">df -h\
             </｜DSML｜invoke>\n<｜DSML｜invoke name=\"shell\">\n<｜DSML｜parameter name=\"line\" string=\"true\">free -m\
             </｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
            both,
        ),
        (
            "<tool_call>\n<function=shell>\n<parameter=line>\ndf -h\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
            json!([["shell", {"line": "df -h"}], ["now", {}]]),
        ),
    ]);
}

#[test]
fn d2_a_value_keeps_the_tags_of_its_own_dialect() {
    let inner = "<parameter name=\"unit\">km</parameter>\n<parameter name=\"zone\">2</parameter>";
    let call = "<tool_call>\n<function=shell>\n<parameter=line>\nls\n</parameter>\n</function>\n</tool_call>";
    for value in [
        inner,
        call,
        "a</parameter> b",
        "<parameter=none>x",
        "one </function> two",
        "see\n<parameter=x>\nhere",
    ] {
        let body = format!("start {value} end");
        for (text, framed) in [
            (
                format!(
                    "<tool_call>\n<function=note>\n<parameter=file>\na.md\n</parameter>\n<parameter=body>\n{body}\n</parameter>\n\
                     </function>\n</tool_call>"
                ),
                "</parameter>",
            ),
            (
                format!(
                    "<minimax:tool_call>\n<invoke name=\"note\">\n<parameter name=\"file\">a.md</parameter>\n\
                     <parameter name=\"body\">{body}</parameter>\n</invoke>\n</minimax:tool_call>"
                ),
                "</parameter>",
            ),
            (
                format!(
                    "<function name=\"note\"><param name=\"file\">a.md</param><param name=\"body\">{body}</param></function>"
                ),
                "</param>",
            ),
        ] {
            if framed == "</param>" && value.contains("</function>") && value != "one </function> two" {
                continue;
            }
            expect(&text, &tools(), &json!([["note", {"file": "a.md", "body": body}]]), "");
        }
    }
    // Without a schema, what is closed is an argument of its own.
    let text = "<tool_call>\n<function=other>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>";
    expect(text, &tools(), &json!([["other", {"a": "1", "b": "2"}]]), "");
    // So is one that the tool does not have: whoever runs the call answers it.
    let text = "<function=shell>\n<parameter=line>\nls\n</parameter>\n<parameter=where>\n/\n</parameter>\n</function>";
    expect(text, &tools(), &json!([["shell", {"line": "ls", "where": "/"}]]), "");
}

#[test]
fn d3_a_garbled_end_of_a_value_is_none_of_it() {
    for end in [
        "</parameter/>",
        "</parameter1>",
        "</parameter",
        "</parameterfunction>",
        "</parameter=line>",
        "</line>",
    ] {
        for (before, after) in [("", "\n</function>\n</tool_call>"), ("\n", "\n</tool_call>")] {
            let text = format!("<tool_call>\n<function=shell>\n<parameter=line>\nls -l{before}{end}{after}");
            expect(&text, &tools(), &json!([["shell", {"line": "ls -l"}]]), "");
        }
        let text = format!(
            "<tool_call>\n<function=note>\n<parameter=body>\n<line>x{end} y\n</parameter>\n<parameter=file>\nb\n</parameter>\n</function>\n</tool_call>"
        );
        expect(&text, &tools(), &json!([["note", {"body": format!("<line>x{end} y"), "file": "b"}]]), "");
    }
    let text = "<tool_call>\n<function=shell>\n<parameter=line>\n<line>ls</line>\n</function>\n</tool_call>";
    expect(text, &tools(), &json!([["shell", {"line": "<line>ls</line>"}]]), "");
}

#[test]
fn d4_the_markup_types_what_the_schema_leaves_open() {
    let m3 = "]<]minimax[>[";
    expect_calls(&[
        (
            "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"store\">\n<｜DSML｜parameter name=\"entry\" string=\"false\">\
             {\"depth\": [1, 2]}</｜DSML｜parameter>\n<｜DSML｜parameter name=\"body\" string=\"false\">12</｜DSML｜parameter>\n\
             </｜DSML｜invoke>\n</｜DSML｜tool_calls>",
            json!([["store", {"entry": {"depth": [1, 2]}, "body": "12"}]]),
        ),
        (
            &format!(
                "{m3}<tool_call>\n{m3}<invoke name=\"store\">{m3}<entry>{m3}<tide>high{m3}</tide>{m3}<at>6{m3}</at>{m3}</entry>\
                 {m3}</invoke>\n{m3}</tool_call>"
            ),
            json!([["store", {"entry": {"tide": "high", "at": "6"}}]]),
        ),
    ]);
}

#[test]
fn d5_one_argument_that_wraps_the_others_is_unwrapped() {
    let wrapped = "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"note\">\n<｜DSML｜parameter name=\"arguments\" string=\"false\">\
                   {\"file\": \"a.md\", \"body\": \"x\"}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
    expect_calls(&[
        (wrapped, json!([["note", {"file": "a.md", "body": "x"}]])),
        (
            "<function name=\"note\"><param name=\"arguments\">{\"file\": \"b\"}</param></function>",
            json!([["note", {"file": "b"}]]),
        ),
        // Not where the keys are none of the tool's, or another argument stands beside it.
        (
            "<function name=\"note\"><param name=\"arguments\">{\"path\": \"b\"}</param></function>",
            json!([["note", {"arguments": "{\"path\": \"b\"}"}]]),
        ),
        (
            "<function name=\"note\"><param name=\"more\">{\"file\": \"b\"}</param><param name=\"body\">c</param></function>",
            json!([["note", {"more": "{\"file\": \"b\"}", "body": "c"}]]),
        ),
    ]);
    let none = Arc::new(Offered::any());
    let read = read(wrapped, &none, &ScanOptions::default());
    assert!(read.calls[0].arguments.starts_with("{\"arguments\": {"), "{read:?}");
}

#[test]
fn d9_numbers_are_the_ones_that_are_meant() {
    for (written, meant) in [
        ("03", json!(3)),
        ("+3", json!(3)),
        ("018956", json!(18956)),
        ("-007", json!(-7)),
        ("0", json!(0)),
        ("7.0", json!(7.0)),
        ("1_000", json!(1000)),
    ] {
        let text = format!("<function=dial><parameter=number>{written}</parameter></function>");
        expect(&text, &tools(), &json!([["dial", {"number": meant}]]), "");
    }
    for (written, meant) in
        [(".5", json!(0.5)), ("-.25", json!(-0.25)), ("+1.5", json!(1.5)), ("00.5", json!(0.5))]
    {
        let text = format!("<function=dial><parameter=share>{written}</parameter></function>");
        expect(&text, &tools(), &json!([["dial", {"share": meant}]]), "");
        let text =
            format!("<tool_call>{{\"name\": \"dial\", \"arguments\": {{\"share\": {written}}}}}</tool_call>");
        expect(&text, &tools(), &json!([["dial", {"share": meant}]]), "");
    }
    // Where a text fits as well, zeros before a number are meant.
    let text = "<function=dial><parameter=label>007</parameter><parameter=number>1.5</parameter></function>";
    expect(text, &tools(), &json!([["dial", {"label": "007", "number": "1.5"}]]), "");
}

#[test]
fn d10_literals_of_python() {
    expect_calls(&[
        ("[store(entry={'b', 'a'})]", json!([["store", {"entry": ["b", "a"]}]])),
        ("[store(entry=[{1, 2}, {'x': {}}, {}])]", json!([["store", {"entry": [[1, 2], {"x": {}}, {}]}]])),
        (
            "[shell(line='sed -n '360,450p' notes.md')]",
            json!([["shell", {"line": "sed -n '360,450p' notes.md"}]]),
        ),
        ("[dial(number=07, label='x')]", json!([["dial", {"number": 7, "label": "x"}]])),
    ]);
}

#[test]
fn d14_a_line_end_frames_a_value_on_both_sides_or_on_none() {
    for (written, value) in
        [("\nx\n", "x"), ("x\n", "x\n"), ("x\r\n", "x\r\n"), ("\nx", "x"), ("\n\nx\n\n", "\nx\n")]
    {
        for (open, close) in [("<seed:tool_call>", "</seed:tool_call>"), ("<tool_call>", "</tool_call>")] {
            let text =
                format!("{open}<function=shell><parameter=line>{written}</parameter></function>{close}");
            expect(&text, &tools(), &json!([["shell", {"line": value}]]), "");
        }
    }
}

#[test]
fn b1_a_value_is_the_one_that_the_schema_has_among_others() {
    let offered = offering(json!({"set": {"type": "object", "properties": {
        "mixed": {"enum": ["1", 2, "true", null]},
        "either": {"anyOf": [{"enum": [1, 2]}, {"enum": ["on", "off"]}]},
        "count": {"type": "integer"},
    }}}));
    for (key, text, value) in [
        ("mixed", "1", json!("1")),
        ("mixed", "\"1\"", json!("1")),
        ("mixed", "2", json!(2)),
        ("mixed", "true", json!("true")),
        ("mixed", "null", json!(null)),
        ("either", "1", json!(1)),
        ("either", "on", json!("on")),
        ("count", "\"3\"", json!(3)),
    ] {
        let call = format!(
            "<tool_call>\n<function=set>\n<parameter={key}>\n{text}\n</parameter>\n</function>\n</tool_call>"
        );
        let mut arguments = serde_json::Map::new();
        arguments.insert(key.into(), value);
        expect(&call, &offered, &json!([["set", arguments]]), "");
    }
}
