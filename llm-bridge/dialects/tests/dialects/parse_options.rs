//! Parsing options, each beside the default.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use crate::{
    common::{Seen, every, parsed, rebuilt, same_calls, scan},
    corpus::read_exceptions,
};
use serde_json::{Value, json};
use toolrack_dialects::{Abort, Offered, OfferedTool, ParseOptions, Parsed, ScanOptions, Tag};

fn tools() -> Arc<Offered> {
    let schema = json!({"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    let mut shown = Tag::new("LOOK");
    shown.strip_from_display = false;
    let tools = [("weather", Tag::new("WEATHER")), ("search", shown)];
    Arc::new(Offered::new(tools.map(|(name, tag)| OfferedTool::new(name).schema(schema.clone()).tag(tag))))
}

fn options(names: &str, deltas: bool) -> ScanOptions {
    ScanOptions::default().parsing(names.parse().unwrap()).deltas(deltas)
}

/// The events of a text, which do not depend on how it is cut, nor what is found on whether deltas are asked for.
fn events(text: &str, names: &str) -> Vec<Seen> {
    let whole = scan(text, &[], &tools(), &options(names, false));
    assert_eq!(rebuilt(&whole), text, "{names}");
    for size in [1, 2, 3, 7] {
        let cuts = every(text, size);
        assert_eq!(scan(text, &cuts, &tools(), &options(names, false)), whole, "{names}, by {size}: {text}");
        let live = scan(text, &cuts, &tools(), &options(names, true));
        assert_eq!(rebuilt(&live), text, "{names}");
        assert_eq!(written(&parsed(&live)), written(&parsed(&whole)), "{names}, by {size}: {text}");
        announced(&live);
    }
    whole
}

/// Every call that was announced came, and its deltas are its arguments.
fn announced(seen: &[Seen]) {
    let mut open = BTreeMap::new();
    for event in seen {
        match event {
            Seen::Begin(index, _) => assert_eq!(open.insert(*index, String::new()), None),
            Seen::Delta(index, part) => open.get_mut(index).unwrap().push_str(part),
            Seen::Call(call) => assert_eq!(open.remove(&call.index).as_ref(), Some(&call.arguments)),
            Seen::Aborted(index, ..) => drop(open.remove(index)),
            _ => {}
        }
    }
    assert_eq!(open, BTreeMap::new());
}

/// What was found, as one line: thinking in brackets, then text and calls.
fn written(parsed: &Parsed) -> String {
    let calls: Vec<String> =
        parsed.calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect();
    format!("[{}] {} -> {}", parsed.reasoning, parsed.content, calls.join(" "))
}

/// Asks what a text is by default and with these options.
fn both(names: &str, text: &str, default: &str, other: &str) {
    assert_eq!(written(&parsed(&events(text, ""))), default, "by default: {text}");
    assert_eq!(written(&parsed(&events(text, names))), other, "{names}: {text}");
}

/// Why calls of a text are none.
fn aborts(text: &str, names: &str) -> Vec<(String, Abort)> {
    let abort = |event: Seen| match event {
        Seen::Aborted(_, source, reason) => Some((source, reason)),
        _ => None,
    };
    events(text, names).into_iter().filter_map(abort).collect()
}

const CALL: &str = "<tool_call>{\"name\":\"weather\",\"arguments\":{}}</tool_call>";
const OTHER: &str = "<tool_call>{\"name\":\"nobody\",\"arguments\":{}}</tool_call>";
const XML: &str = "<function=weather><parameter=city>Oslo</parameter></function>";

#[test]
fn only_offered() {
    let name = "only_offered";
    both(name, OTHER, "[]  -> nobody{}", &format!("[] {OTHER} -> "));
    both(
        name,
        &format!("{CALL} and {OTHER} end"),
        "[]  and  end -> weather{} nobody{}",
        &format!("[]  and {OTHER} end -> weather{{}}"),
    );
    both(
        name,
        "<function=nobody><parameter=a>1</parameter></function>.",
        "[] . -> nobody{\"a\": \"1\"}",
        "[] <function=nobody><parameter=a>1</parameter></function>. -> ",
    );
    // What is offered in an array stays a call.
    both(
        name,
        "[TOOL_CALLS][{\"name\":\"weather\",\"arguments\":{}}, {\"name\":\"nobody\",\"arguments\":{}}]",
        "[]  -> weather{} nobody{}",
        "[] , {\"name\":\"nobody\",\"arguments\":{}}] -> weather{}",
    );
    assert_eq!(aborts(OTHER, name), [(OTHER.to_owned(), Abort::NotOffered)]);
    assert_eq!(aborts(OTHER, ""), []);
    both("only_offered,drop_unreadable", &format!("a {OTHER}\nb"), "[] a \nb -> nobody{}", "[] a \nb -> ");
    // What was announced under another name is taken back.
    let renamed = OTHER.replace("{\"name", "{\"name\":\"weather\",\"name");
    both(name, &renamed, "[]  -> nobody{}", &format!("[] {renamed} -> "));
    // Any name counts as offered where the names are not known.
    let read = scan(OTHER, &[], &Arc::new(Offered::any()), &options(name, false));
    assert_eq!(parsed(&read).calls.len(), 1);
}

#[test]
fn only_closed() {
    let name = "only_closed";
    let open = CALL.trim_end_matches("</tool_call>");
    both(name, open, "[]  -> weather{}", &format!("[] {open} -> "));
    both(
        name,
        &format!("{open} so\n{CALL}"),
        "[]  so\n -> weather{} weather{}",
        &format!("[] {open} so\n -> weather{{}}"),
    );
    both(
        name,
        &format!("{open}\n{CALL}"),
        "[] \n -> weather{} weather{}",
        &format!("[] {open}\n -> weather{{}}"),
    );
    let cut = XML.trim_end_matches("</function>");
    both(name, cut, "[]  -> weather{\"city\": \"Oslo\"}", &format!("[] {cut} -> "));
    both(
        name,
        &format!("{cut}\nthen"),
        "[] then -> weather{\"city\": \"Oslo\"}",
        &format!("[] {cut}\nthen -> "),
    );
    assert_eq!(aborts(open, name), [(open.to_owned(), Abort::Incomplete)]);
    // The end of the call is enough, and what has none needs none.
    for (text, read) in [
        (format!("<tool_call>{XML}"), "[]  -> weather{\"city\": \"Oslo\"}"),
        ("{\"name\": \"weather\", \"arguments\": {}}".into(), "[]  -> weather{}"),
        ("[TOOL_CALLS]weather{}".into(), "[]  -> weather{}"),
        ("WEATHER: Oslo".into(), "[]  -> weather{\"raw_arg\": \"Oslo\"}"),
    ] {
        both(name, &text, read, read);
    }
    // In thinking and after a backtick it is no call either.
    let thinking = format!("<think>so {open}");
    both(name, &thinking, "[so ]  -> weather{}", &format!("[so {open}]  -> "));
    both(name, &format!("It's `x {open}"), "[] It's `x  -> weather{}", &format!("[] It's `x {open} -> "));
    both("only_closed,drop_unreadable", &format!("a {open} b"), "[] a  b -> weather{}", "[] a  b -> ");
}

#[test]
fn calls_in_thinking() {
    let name = "calls_in_thinking";
    let wrapped = format!("<tool_call>{XML}</tool_call>");
    let text = format!("<think>one {CALL} two {wrapped} three</think>done {CALL}");
    let thought = format!("[one {CALL} two {wrapped} three] done  -> weather{{}}");
    both(name, &text, &thought, "[one  two  three] done  -> weather{} weather{\"city\": \"Oslo\"} weather{}");
    let kinds: Vec<bool> = events(&text, name)
        .iter()
        .filter(|event| !matches!(event, Seen::Frame(_)))
        .map(|event| matches!(event, Seen::Call(_)))
        .collect();
    assert_eq!(kinds, [false, true, false, true, false, false, true], "in the order of the text");
    // What ends thinking that is left open does so in any case, and what is none in the open is none here.
    both(name, &format!("<think>a {CALL}"), "[a ]  -> weather{}", "[a ]  -> weather{}");
    both(name, &format!("<think>a {CALL} b"), &format!("[a {CALL} b]  -> "), "[a ]  b -> weather{}");
    for thought in [format!("a {OTHER} b"), format!("a `{CALL}` b"), format!("a {XML} b")] {
        let read = format!("[{thought}]  -> ");
        both(name, &format!("<think>{thought}</think>"), &read, &read);
    }
    both(
        name,
        &format!("<think>a <tool_call>{XML}</think>b"),
        &format!("[a <tool_call>{XML}] b -> "),
        "[a ] b -> weather{\"city\": \"Oslo\"}",
    );
}

#[test]
fn drop_text_after_call() {
    let name = "drop_text_after_call";
    both(
        name,
        &format!("a {CALL} b\n{CALL}\nc"),
        "[] a  b\n\nc -> weather{} weather{}",
        "[] a  -> weather{} weather{}",
    );
    both(name, &format!("a {OTHER} b"), "[] a  b -> nobody{}", "[] a  -> nobody{}");
    both(name, "a <tool_call> b", "[] a <tool_call> b -> ", "[] a <tool_call> b -> ");
    both(name, &format!("{CALL} b <think>c</think>"), "[c]  b  -> weather{}", "[c]  -> weather{}");
    // The line of a tag that is to be shown is text after a call, too.
    let text = "LOOK: a\nb\nLOOK: c\n";
    let calls = "search{\"raw_arg\": \"a\"} search{\"raw_arg\": \"c\"}";
    both(name, text, &format!("[] {text} -> {calls}"), &format!("[] LOOK: a\n -> {calls}"));
}

#[test]
fn values() {
    let call = |value: &str| format!("<function=weather><parameter=x>{value}</parameter></function>");
    let is = |value: &str| format!("[]  -> weather{{\"x\": {value}}}");
    for (name, value, default, other) in [
        ("trim_values", "\n  Oslo \n", r#""  Oslo ""#, r#""Oslo""#),
        ("trim_values", "\n\n\tOslo\n\n", r#""\n\tOslo\n""#, r#""Oslo""#),
        ("trim_values", " a\n b ", r#"" a\n b ""#, r#""a\n b""#),
        ("trim_values", " ", r#"" ""#, r#""""#),
        ("trim_values", "&lt;", r#""&lt;""#, r#""&lt;""#),
        (
            "decode_entities",
            "a &lt;b&gt; &amp;amp; &#x1F642;&#33;",
            r#""a &lt;b&gt; &amp;amp; &#x1F642;&#33;""#,
            r#""a <b> &amp; 🙂!""#,
        ),
        ("decode_entities", "R&D &copy; &", r#""R&D &copy; &""#, r#""R&D &copy; &""#),
        ("decode_entities", "\n &quot;\n", r#"" &quot;""#, r#"" \"""#),
        ("trim_values,decode_entities", " &lt;a ", r#"" &lt;a ""#, r#""<a""#),
        ("guess_types", "5", r#""5""#, "5"),
        ("guess_types", "\n -2.50e3\n", r#"" -2.50e3""#, "-2.50e3"),
        ("guess_types", "True", r#""True""#, "true"),
        ("guess_types", "None", r#""None""#, "null"),
        ("guess_types", "[1, \"a\"]", r#""[1, \"a\"]""#, r#"[1, "a"]"#),
        ("guess_types", "{'a': False}", r#""{'a': False}""#, r#"{"a": false}"#),
        ("guess_types", "[1, 2", r#""[1, 2""#, r#""[1, 2""#),
        ("guess_types", "012", r#""012""#, r#""012""#),
        ("guess_types", "\"quoted\"", r#""\"quoted\"""#, r#""\"quoted\"""#),
        ("guess_types", "Oslo", r#""Oslo""#, r#""Oslo""#),
    ] {
        both(name, &call(value), &is(default), &is(other));
    }
    // What the schema or the markup says is not guessed.
    let all = "trim_values,decode_entities,guess_types";
    let text = "<function=weather><parameter=city> 5 </parameter><parameter=days> 5 </parameter></function>";
    both(
        "guess_types",
        text,
        "[]  -> weather{\"city\": \" 5 \", \"days\": 5}",
        "[]  -> weather{\"city\": \" 5 \", \"days\": 5}",
    );
    let markup = "<｜DSML｜function_calls><｜DSML｜invoke name=\"weather\"><｜DSML｜parameter name=\"x\" string=\"true\">5</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>";
    both("guess_types", markup, &is(r#""5""#), &is(r#""5""#));
    // Trees of elements too, down to their leaves.
    let tree = "<tool_call><invoke name=\"weather\"><x><a> &lt; </a><b>[1]</b></x></invoke></tool_call>";
    let tree = tree.replace('<', "]<]minimax[>[<");
    both(all, &tree, &is(r#"{"a":" &lt; ","b":"[1]"}"#), &is(r#"{"a":"<","b":[1]}"#));
    // JSON and literals are not in tags.
    for text in [
        "<tool_call>{\"name\":\"weather\",\"arguments\":{\"x\":\" &lt;5 \"}}</tool_call>",
        "[weather(x=' &lt;5 ')]",
    ] {
        assert_eq!(written(&parsed(&events(text, ""))), written(&parsed(&events(text, all))));
        assert!(written(&parsed(&events(text, all))).contains(" &lt;5 "));
    }
}

#[test]
fn values_are_handed_on_whole_only_where_they_are_changed() {
    let text = "<function=weather><parameter=city>Oslo and more";
    let deltas = |names: &str| {
        let seen = scan(text, &every(text, 1), &tools(), &options(names, true));
        let parts = seen.into_iter().filter_map(|event| match event {
            Seen::Delta(_, part) => Some(part),
            _ => None,
        });
        parts.collect::<String>()
    };
    assert!(deltas("").contains("Oslo"));
    assert!(deltas("only_offered,guess_types").contains("Oslo"));
    assert!(!deltas("trim_values").contains("Oslo"));
    assert_eq!(deltas("only_closed"), "");
}

#[test]
fn refuse_duplicates() {
    let name = "refuse_duplicates";
    let twice = "<function=weather><parameter=city>A</parameter><parameter=city>B</parameter></function>";
    both(name, twice, "[]  -> weather{\"city\": \"A\", \"city\": \"B\"}", &format!("[] {twice} -> "));
    assert_eq!(aborts(twice, name), [(twice.to_owned(), Abort::Unreadable)]);
    let json = "{\"name\": \"weather\", \"arguments\": {\"a\": 1, \"\\u0061\": 2}}";
    both(name, json, "[]  -> weather{\"a\": 1, \"\\u0061\": 2}", &format!("[] {json} -> "));
    let inside = "{\"name\": \"weather\", \"arguments\": {\"a\": {\"b\": 1, \"b\": 2}}}";
    let kept = "[]  -> weather{\"a\": {\"b\": 1, \"b\": 2}}";
    both(name, inside, kept, kept);
    both(
        name,
        &format!("{twice}{XML}"),
        "[]  -> weather{\"city\": \"A\", \"city\": \"B\"} weather{\"city\": \"Oslo\"}",
        &format!("[] {twice} -> weather{{\"city\": \"Oslo\"}}"),
    );
}

#[test]
fn drop_unreadable() {
    let name = "drop_unreadable";
    for (text, kept) in [
        ("a <tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Os", "[] a  -> "),
        ("a <tool_call>{\"name\": \"weather\", \"arguments\": [oh]}</tool_call> b", "[] a  b -> "),
        ("a <tool_call>{\"arguments\": {}}</tool_call> b", "[] a  b -> "),
        ("<function=weather><parameter=city>Oslo", "[]  -> "),
        ("a <function=weather>", "[] a  -> "),
        ("call:weather{city:<|\"|>Os", "[]  -> "),
        ("<function=weather>{\"city\": [oh}</function></tool_call> b", "[]  b -> "),
        ("[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {}}, \"x\"] b", "[]  -> "),
        (
            "<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"a\": [oh}<|tool_call_end|><|tool_calls_section_end|> b",
            "[]  b -> ",
        ),
    ] {
        both(name, text, &format!("[] {text} -> "), kept);
    }
    // Up to the next delimiter that opens calls: they are read as ever.
    let bad = "<tool_call>{\"name\": \"weather\", \"arguments\": [oh ";
    both(name, &format!("a {bad}{CALL} b"), &format!("[] a {bad} b -> weather{{}}"), "[] a  b -> weather{}");
    let after = "<tool_call>{\"name\":\"weather\",\"arguments\":{}}\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Os";
    both(
        name,
        after,
        "[] \n{\"name\":\"weather\",\"arguments\":{\"city\":\"Os -> weather{}",
        "[]  -> weather{}",
    );
    // A delimiter that is mentioned, shown or not one of a call stays text.
    for text in [
        "The <tool_call> delimiter, then {\"name\": \"weather\"}.",
        "Use <tool_call>{…}</tool_call> for calls.",
        "Write `<tool_call>{\"name\": \"weather\", \"arguments\": [oh]}</tool_call>`.",
        "The <function=weather> tag.",
        "{\"name\": \"weather\", \"arguments\": [oh]}",
        "```json\n{\"name\": \"weather\", \"arguments\": [oh]}\n```",
    ] {
        both(name, text, &format!("[] {text} -> "), &format!("[] {text} -> "));
    }
    let thinking = "<think>a <tool_call>{\"name\": \"weather\", \"arguments\": [oh]}</tool_call> b</think>";
    let thought = written(&parsed(&events(thinking, "")));
    assert_eq!(written(&parsed(&events(thinking, name))), thought);
    assert!(thought.contains("[oh]"));
}

#[test]
fn options_are_named() {
    assert_eq!("".parse(), Ok(ParseOptions::default()));
    let read: ParseOptions =
        serde_json::from_value(json!({"trim_values": true, "guess_types": false})).unwrap();
    assert_eq!(Ok(read), " trim_values, ".parse());
    let error = "trim".parse::<ParseOptions>().unwrap_err();
    assert!(error.contains("`trim`") && error.contains("`trim_values`"), "{error}");
}

/// How many of the cases that contradict the default are as their peer has them with the options of that peer.
#[test]
fn b1_exceptions_with_the_options_of_their_peers() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus_exceptions.jsonl");
    let exceptions = read_exceptions(&list).unwrap();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for case in crate::common::lines("corpus/dialects") {
        let id = case["id"].as_str().unwrap();
        let Some(peer) =
            exceptions.iter().find(|other| other.id == id).and_then(|other| other.id.split('/').next())
        else {
            continue;
        };
        let text = case["input"].as_str().unwrap();
        let offered = crate::common::offered(&case["tools"]);
        let right = |names: &str| {
            let options = options(names, false).thinking(case["thinking"] == true);
            let read = parsed(&scan(text, &[], &offered, &options));
            let fits = |ours: &str, theirs: &Value| {
                theirs.as_str().is_none_or(|theirs| ours.trim() == theirs.trim())
            };
            same_calls(&read.calls, case["expect"]["calls"].as_array().unwrap())
                && fits(&read.content, &case["expect"]["content"])
                && fits(&read.reasoning, &case["expect"]["reasoning"])
        };
        let count = counts.entry(peer).or_default();
        count.1 += 1;
        count.0 += usize::from(PEERS.iter().filter(|(name, _)| *name == peer).any(|(_, names)| right(names)));
    }
    for (peer, (right, all)) in &counts {
        println!("{peer}: {right} of {all} exceptions are right with its options");
    }
    for (peer, names) in PEERS.iter().filter(|_| !counts.is_empty()) {
        assert!(counts.get(peer).is_some_and(|(right, _)| *right > 0), "{peer} does not read so: {names}");
    }
}

/// The options of each peer, which decides differently from dialect to dialect.
const PEERS: &[(&str, &str)] = &[
    ("dynamo", "only_closed,drop_text_after_call,drop_unreadable"),
    ("dynamo", "drop_unreadable,refuse_duplicates"),
    ("dynamo", "calls_in_thinking,guess_types"),
    ("sglang", "only_offered,only_closed,drop_unreadable"),
    ("sglang", "only_offered,only_closed,refuse_duplicates,guess_types"),
    ("smg", "only_offered,only_closed,trim_values,decode_entities,guess_types"),
    ("vllm", "drop_text_after_call,drop_unreadable,guess_types"),
];
