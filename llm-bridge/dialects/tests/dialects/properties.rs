//! What holds of the scanner whatever a model writes: B1.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    common::{Dice, Seen, lines, offered, parsed, rebuilt, same, scan},
    rows::written,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolrack_dialects::{Form, Offered, OfferedTool, ParseOptions, ScanOptions, Tag, dialects, parse};

/// Pieces of which texts are made that come near to calls.
const PIECES: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<tool_call>\n",
    "\n</tool_call>\n",
    "<function=f>",
    "<function=",
    "</function>",
    "<parameter=a>",
    "<parameter=n>\n",
    "<parameter=",
    "</parameter>",
    "\n</parameter>\n",
    "{\"name\": \"f\", ",
    "{“name”: “f”, ",
    "“arguments”: {“a”: “x”}}",
    "“",
    "”",
    "\"arguments\": {\"a\": \"x\"}}",
    "\"arguments\": {\"n\": 1,}}",
    "{\"name\": \"f\", \"arguments\": {}}",
    "{'name': 'f', 'arguments': {'a': True}}",
    "{\"name\":\"g\",\"parameters\":\"{}\"}",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    ",",
    ":",
    ";",
    "```json\n",
    "```\n",
    "```",
    "`",
    "``",
    "[{\"name\":\"f\",\"arguments\":{}}, ",
    "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
    "5, ",
    "\"x\", ",
    "\n",
    "\r\n",
    " ",
    "   \n",
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<thinking>",
    "</thinking>",
    "<|channel>thought\n",
    "<channel|>",
    "&lt;",
    "<tool_call>{\"name\":\"g\",\"arguments\":{\"a\":1,\"a\":2}}",
    "TAG: one\n",
    "TAG:",
    "\nTAG: x",
    "word",
    "é",
    "｜",
    "🙂",
    "<",
    ">",
    "</",
    "<t",
    "<tool",
    "1",
    "-2.5e3",
    "true",
    "null",
    "//",
    "/*",
    "*/",
    "#",
    "\u{1}",
];

/// How many cases a property is tried with; `PROPTEST_CASES` says otherwise.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// The delimiters of all dialects, and what stands in their calls.
fn delimiters() -> Vec<String> {
    let mut delimiters: Vec<String> = Vec::new();
    for row in dialects() {
        delimiters.extend(row.delimiters.iter().map(|delimiter| delimiter.text.to_owned()));
        delimiters.extend(row.close.iter().chain(row.noise).map(|delimiter| (*delimiter).to_owned()));
        delimiters.extend(
            row.thinking
                .iter()
                .flat_map(|(open, close)| [open, close])
                .map(|delimiter| (*delimiter).to_owned()),
        );
        let call = written(row, "f", &json!({"a": "x", "n": 1}));
        // The call, cut where something else may come between.
        for (from, to) in [(0, 1), (0, 2), (1, 2), (1, 4), (3, 4), (2, 3)] {
            let at = |part: usize| call.floor_char_boundary(call.len() * part / 4);
            let (from, to) = (at(from), if to == 4 { call.len() } else { at(to) });
            delimiters.push(call[from.min(to)..to].to_owned());
        }
        delimiters.push(call);
    }
    delimiters.extend(
        [
            " to=f",
            "to=f<|message|>",
            "to=self<|message|>",
            "to=user<|message|>",
            "[f(",
            "f(a='x')",
            "a=",
            "call:f{",
            "f[ARGS]",
            "f\n",
        ]
        .map(str::to_owned),
    );
    delimiters
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(PIECES).prop_map(str::to_owned),
        8 => prop::sample::select(delimiters()),
        1 => ".{0,4}"
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Any reading; half of the time the default.
fn reading() -> impl Strategy<Value = ParseOptions> {
    let names = "only_offered only_closed calls_in_thinking drop_text_after_call trim_values decode_entities \
                 guess_types refuse_duplicates drop_unreadable";
    let names: Vec<&str> = names.split(' ').collect();
    prop_oneof![Just(Vec::new()), prop::sample::subsequence(names, 0..=9)]
        .prop_map(|on| on.join(",").parse().unwrap())
}

fn tools(kind: u8) -> Arc<Offered> {
    let schema = json!({"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}});
    Arc::new(match kind {
        0 => Offered::any(),
        1 => Offered::none(),
        _ => {
            let mut tag = Tag::new("TAG");
            tag.strip_from_display = kind == 2;
            Offered::new([OfferedTool::new("f").schema(schema).tag(tag)])
        }
    })
}

/// The whole life of every announced call: its deltas are its arguments, and it ends once.
fn check_calls(seen: &[Seen], deltas: bool) -> Result<(), TestCaseError> {
    let mut open: HashMap<usize, String> = HashMap::new();
    for event in seen {
        match event {
            Seen::Begin(index, _) => prop_assert!(open.insert(*index, String::new()).is_none()),
            Seen::Delta(index, part) => open.get_mut(index).unwrap().push_str(part),
            Seen::Call(call) => {
                prop_assert!(serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok(), "{call:?}");
                if deltas {
                    prop_assert_eq!(open.remove(&call.index).unwrap(), call.arguments.clone());
                }
            }
            Seen::Aborted(index, ..) => drop(open.remove(index)),
            _ => {}
        }
    }
    prop_assert!(open.is_empty());
    Ok(())
}

/// In pieces the same is read as from the whole text, and nothing is lost.
fn check_cuts(
    text: &str,
    offered: &Arc<Offered>,
    options: &ScanOptions,
    cuts: &[Vec<usize>],
) -> Result<(), TestCaseError> {
    let whole = scan(text, &[], offered, options);
    prop_assert_eq!(rebuilt(&whole), text);
    check_calls(&whole, options.deltas)?;
    for cuts in cuts {
        let pieces = scan(text, cuts, offered, options);
        prop_assert_eq!(rebuilt(&pieces), text);
        check_calls(&pieces, options.deltas)?;
        // How the arguments are cut into deltas is the only thing that may differ.
        let rest = |seen: &[Seen]| -> Vec<Seen> {
            seen.iter().filter(|event| !matches!(event, Seen::Delta(..))).cloned().collect()
        };
        prop_assert_eq!(rest(&pieces), rest(&whole));
    }
    Ok(())
}

/// Texts that were read otherwise in pieces, or whose announced call was left open.
#[test]
fn b1_texts_that_random_ones_found() {
    for (text, thinking, cap) in [
        ("<｜DSML｜tool_calls>[\n{\"name\": \"f\", ", false, 8 << 20),
        (
            "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\":\"x\",\"n\":1}<|call|>",
            true,
            58,
        ),
        (
            "<tool_call><function_call>{\"name\": \"f\", \"arguments\": {\"a\":\"x\",\"n\":1}}</tool_call>",
            false,
            8 << 20,
        ),
    ] {
        let options = ScanOptions::default().thinking(thinking).deltas(true).max_call_bytes(cap);
        check_cuts(text, &tools(2), &options, &[crate::common::every(text, 1)]).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(3000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn b1_any_text_cut_anywhere(
        text in text(), kind in 0u8..4, thinking: bool, deltas: bool, seed: u64,
        cap in prop_oneof![5 => Just(8usize << 20), 1 => 10usize..60], reading in reading(),
    ) {
        let options = ScanOptions::default().thinking(thinking).deltas(deltas).max_call_bytes(cap).parsing(reading);
        let mut dice = Dice(seed | 1);
        let cuts = [crate::common::every(&text, 1), dice.cuts(&text), dice.cuts(&text)];
        check_cuts(&text, &tools(kind), &options, &cuts)?;
    }

    #[test]
    fn b1_plain_text_is_untouched(text in "[^<\\[{`]{0,200}") {
        let seen = parse(&text, tools(0), ScanOptions::default());
        prop_assert_eq!(seen.content, text);
        prop_assert_eq!(seen.calls.len(), 0);
    }
}

fn argument() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(PIECES).prop_map(str::to_owned);
    let string = prop_oneof![
        prop::collection::vec(word, 0..6).prop_map(|pieces| pieces.concat()),
        "[\n\r \t]{0,3}[a-z<>{}]{0,3}[\n\r \t]{0,3}",
        any::<String>(),
    ];
    let leaf = prop_oneof![
        4 => string.prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z<\"]{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(2000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn b1_what_is_written_is_read_back(
        name in prop_oneof![4 => Just("f".to_owned()), 1 => "[a-z<>\"\\n {}]{0,4}"],
        list in prop::collection::vec((prop_oneof![4 => "[a-z_]{1,3}", 1 => ".{0,3}"], argument()), 0..4),
        seed: u64,
    ) {
        let arguments: Map<String, Value> = list.into_iter().collect();
        // A schema as its owner would have it: the types of these values, and another property.
        let mut properties = Map::from_iter([("a".to_owned(), json!({"type": "string"}))]);
        for (key, value) in &arguments {
            let kind = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(number) if number.is_f64() => "number",
                Value::Number(_) => "integer",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            properties.insert(key.clone(), json!({"type": kind}));
        }
        let tool = OfferedTool::new(&name).schema(json!({"properties": properties}));
        let offered = Arc::new(Offered::new([tool]));
        for row in dialects() {
            let Some(call) = row.call(&name, &arguments) else {
                prop_assert!(name != "f" || !matches!(row.forms, [Form::Json(_), ..]), "{arguments:?}");
                continue;
            };
            for (before, after) in [("", ""), ("Text: a `b`.\n", "\nand on")] {
                let text = format!("{before}{call}{after}");
                let options = ScanOptions::default();
                let read = parsed(&scan(&text, &Dice(seed | 1).cuts(&text), &offered, &options));
                prop_assert_eq!(read.calls.len(), 1, "{}", text);
                prop_assert_eq!(&read.calls[0].name, &name);
                let ours: Value = serde_json::from_str(&read.calls[0].arguments).unwrap();
                let given: Value = serde_json::from_str(&serde_json::to_string(&arguments).unwrap()).unwrap();
                prop_assert_eq!(ours, given, "{}", text);
                prop_assert_eq!(read.content, format!("{before}{after}"));
            }
        }
    }
}

#[test]
fn b1_hostile_input_is_linear() {
    let shapes: Vec<Box<dyn Fn(usize) -> String>> = vec![
        Box::new(|n| "<tool_call>".repeat(n / 11)),
        Box::new(|n| "<tool_call>{".repeat(n / 12)),
        Box::new(|n| {
            let open = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"";
            format!("{open}{}", "<tool_call:x>".repeat(n / 13))
        }),
        Box::new(|n| format!("<function=f><parameter=a>{}", "</a>".repeat(n / 4))),
        Box::new(|n| format!("<function=f><parameter=a>{}", "x</parameter>".repeat(n / 13))),
        Box::new(|n| {
            let call = "<function=f><parameter=a></parameterx></function>";
            format!("<function=f><parameter=a>{}", call.repeat(n / 49))
        }),
        Box::new(|n| "<tool_call>{\"a\":\"".repeat(n / 17)),
        Box::new(|n| "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"".repeat(n / 42)),
        Box::new(|n| "<think><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>".repeat(n / 59)),
        Box::new(|n| {
            let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
            format!("<think>{}</think>", call.repeat(n / 51))
        }),
        Box::new(|n| "<function=f><parameter=a>".repeat(n / 25)),
        Box::new(|n| "\n<function=f>\n<parameter=a>\n</function>".repeat(n / 39)),
        Box::new(|n| "{\"name\":\"f\",\"arguments\":".repeat(n / 24)),
        Box::new(|n| "\n{\"name\":\"f\",\"arguments\":{\"a\":\"".repeat(n / 31)),
        Box::new(|n| {
            let call = "{\"name\":\"f\",\"arguments\":{}}\n";
            format!("<tool_call>\n{}</tool_call>", call.repeat(n / 31))
        }),
        Box::new(|n| format!("<|tool_call>call:f{{a:<|\"|>{}", "}<tool_call|>".repeat(n / 13))),
        Box::new(|n| "<|tool_call>call:f{a:<|\"|>}<tool_call|>".repeat(n / 40)),
        Box::new(|n| format!("<|tool_call>call:f{{a:x{}", ", y".repeat(n / 3))),
        Box::new(|n| format!("<|tool_call>call:f{{a:<|\"|>{}", "}  ".repeat(n / 3))),
        Box::new(|n| "<tool_call>f<arg_key>a</arg_key>x".repeat(n / 33)),
        Box::new(|n| format!("<tool_call>f{}", "<arg_key>a</arg_key>x".repeat(n / 21))),
        Box::new(|n| format!("<tool_call>f<arg_key>a{}", "</arg_key>".repeat(n / 10))),
        Box::new(|n| format!("<function=f>{}", "<parameter=a>x".repeat(n / 14))),
        Box::new(|n| format!("analysisX{}", " assistant".repeat(n / 10))),
        Box::new(|n| format!("analysisX{}", "assistantcommentary to=f json{".repeat(n / 30))),
        Box::new(|n| "<think>x<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>".repeat(n / 60)),
        Box::new(|n| {
            format!("<think>{}", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>".repeat(n / 51))
        }),
        Box::new(|n| "<|channel|>? ".repeat(n / 13)),
        Box::new(|n| format!("<think>{}", "x</thinking>".repeat(n / 12))),
        Box::new(|n| format!("<think>{}</think>", "x</thinking>".repeat(n / 12))),
        Box::new(|n| "<think>x</thinking>".repeat(n / 19)),
        Box::new(|n| "\n[".repeat(n / 2)),
        Box::new(|n| "\n```json\n{\"name\":\"f\"".repeat(n / 20)),
        Box::new(|n| "```\n<tool_call>{\"name\":\"f\",\"arguments\":{}}".repeat(n / 44)),
        Box::new(|n| "<tool_call>{\"name\":\"f\",\"arguments\":{}}{\"a\":\"".repeat(n / 46)),
        Box::new(|n| format!("<tool_call>{{\"name\":\"f\",\"arguments\":{}", "[".repeat(n))),
        Box::new(|n| format!("<tool_call>{}", " ".repeat(n))),
        Box::new(|n| format!("<tool_call>{{\"name\":\"f\",\"arguments\":{{}}}}{}", " ".repeat(n))),
        Box::new(|n| format!("<function=f>{}", " ".repeat(n))),
        Box::new(|n| format!("<tool_call>f<arg_key>a</arg_key>{}", " ".repeat(n))),
        Box::new(|n| format!("<tool_call>\n<function=f>\n<parameter=a>\nx</tool_call>{}", " ".repeat(n))),
        Box::new(|n| format!("<|start|>assistant{}", " ".repeat(n))),
        Box::new(|n| format!("[f(a=[{}", "[".repeat(n))),
        Box::new(|n| format!("<|tool_call>call:f{{a:<|\"|>{}", "<|\"".repeat(n / 3))),
        Box::new(|n| "<|channel|>analysis<|message|>x<|end|>".repeat(n / 39)),
        Box::new(|n| {
            "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<a>".repeat(n / 74)
        }),
        Box::new(|n| "x".repeat(n)),
        Box::new(|n| format!("<function=f><parameter=a>{}", "</function> ".repeat(n / 12))),
        Box::new(|n| format!("<function=f><parameter=a>x</parameter>{}", "<x".repeat(n / 2))),
        Box::new(|n| format!("TAG: {}", "x".repeat(n))),
        Box::new(|n| {
            format!("`{}", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>`".repeat(n / 51))
        }),
        Box::new(|n| "` <tool_call>{\"name\":\"f\",\"arguments\":{}} ".repeat(n / 43)),
        Box::new(|n| format!("[{}", "{\"name\":\"f\",\"arguments\":{}},\n5,\n".repeat(n / 36))),
        Box::new(|n| "\n[{\"name\":\"f\",\"arguments\":{}}, 5".repeat(n / 34)),
        Box::new(|n| "<function=f><parameter=a>x</parameter>< stray".repeat(n / 45)),
        Box::new(|n| "`".repeat(n)),
        Box::new(|n| "<".repeat(n)),
        Box::new(|n| "\n".repeat(n)),
        Box::new(|n| "\n```".repeat(n / 4)),
        Box::new(|n| format!("```json\n{}", "\n".repeat(n))),
        Box::new(|n| format!("<tool_call>{{\"name\":\"f\",\"arguments\":{{\"a\":{}", "'x' ".repeat(n / 4))),
        Box::new(|n| {
            format!(
                "<tool_call>{{\"name\":\"f\",\"arguments\":{{\"a\":\"{}</tool_call>",
                "\", ".repeat(n / 3)
            )
        }),
        Box::new(|n| {
            format!(
                "<tool_call>{{\"name\":\"f\",\"arguments\":{{\"a\":\"{}</tool_call>",
                "\" \"".repeat(n / 3)
            )
        }),
    ];
    let run = |text: &str, size: usize, parsing: ParseOptions| -> Duration {
        let options = ScanOptions::default().parsing(parsing);
        let start = Instant::now();
        let seen = scan(text, &crate::common::every(text, size), &tools(2), &options);
        let took = start.elapsed();
        assert_eq!(rebuilt(&seen).len(), text.len());
        took
    };
    for (number, shape) in shapes.iter().enumerate() {
        for (size, reading) in [
            (4, ParseOptions::default()),
            (1 << 30, ParseOptions::default()),
            (4, "drop_unreadable,calls_in_thinking".parse().unwrap()),
            (4, "only_offered,only_closed,refuse_duplicates,drop_unreadable".parse().unwrap()),
        ] {
            // 16 times the input; quadratic work would take 256 times as long, however busy the machine is meanwhile.
            let is_linear = (0..3).any(|_| {
                let small = run(&shape(8_000), size, reading);
                run(&shape(128_000), size, reading) < small * 64 + Duration::from_millis(200)
            });
            assert!(is_linear, "shape {number} in pieces of {size}, {reading:?}");
        }
    }
}

#[test]
fn b1_bfcl_in_every_dialect() {
    let mut dice = Dice(0xbfc1);
    let mut cases = 0;
    for case in lines("corpus/bfcl") {
        let offered = offered(&case["tools"]);
        for row in dialects() {
            let calls = case["calls"].as_array().unwrap();
            let mut text = String::from("Let me look, <b>that</b> is `easy`:\n");
            for call in calls {
                let arguments = call["arguments"].as_object().unwrap();
                let name = call["name"].as_str().unwrap();
                text.push_str(&row.call(name, arguments).unwrap_or_else(|| panic!("{}: {call}", row.name)));
                text.push_str("\nand then\n");
            }
            for only in [None, None, Some(row)] {
                let options = only.into_iter().fold(ScanOptions::default(), ScanOptions::only);
                let seen = scan(&text, &dice.cuts(&text), &offered, &options);
                let read = parsed(&seen);
                assert_eq!(rebuilt(&seen), text);
                // Several dialects write a call alike; only a named dialect distinguishes them.
                assert!(only.is_none() || read.calls.iter().all(|call| call.dialect == row.name));
                assert_eq!(read.calls.len(), calls.len(), "{} {}\n{text}", row.name, case["id"]);
                for (read, call) in read.calls.iter().zip(calls) {
                    let arguments: Value = serde_json::from_str(&read.arguments).unwrap();
                    assert_eq!(read.name, call["name"].as_str().unwrap());
                    assert!(
                        same(&arguments, &call["arguments"]),
                        "{} {}\n{text}\n{arguments}",
                        row.name,
                        case["id"]
                    );
                }
            }
            cases += 1;
        }
    }
    println!("bfcl: {cases} texts");
}

#[test]
fn b1_the_comma_between_calls_belongs_to_them_wherever_the_text_is_cut() {
    for text in [
        "<|tool_call>call:f{a:1}, call:f{a:2}<tool_call|>",
        "<|tool_call>call:f{a:1}, call:f{a:<|\"",
        "<|tool_call>call:f{a:1}, and more",
    ] {
        let options = ScanOptions::default();
        let whole = scan(text, &[], &tools(2), &options);
        for at in 0..text.len() {
            assert_eq!(scan(text, &[at], &tools(2), &options), whole, "{text}, cut at {at}");
        }
    }
}
