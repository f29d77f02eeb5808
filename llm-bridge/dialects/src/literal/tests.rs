use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use super::*;
use crate::repair::MAX_DEPTH;

const PYTHON: LiteralStyle = LiteralStyle { assign: b'=', close: b')', quotes: &[] };
const GEMMA: LiteralStyle = LiteralStyle { assign: b':', close: b'}', quotes: &["<|\"|>"] };
const FUNCTION_GEMMA: LiteralStyle = LiteralStyle { assign: b':', close: b'}', quotes: &["<escape>"] };

/// What was written, where reading ended, and how.
type Outcome = (String, usize, Read, bool);

fn whole(style: LiteralStyle, text: &str) -> Outcome {
    cuts(style, text, &[])
}

fn cuts(style: LiteralStyle, text: &str, at: &[usize]) -> Outcome {
    let (mut reader, mut out) = (Literals::new(style, 0), String::new());
    for end in at {
        let read = reader.feed(&text[..text.floor_char_boundary(*end)], false, &mut out);
        if read != Read::More {
            return (out, reader.pos(), read, reader.repaired());
        }
    }
    let read = reader.feed(text, true, &mut out);
    (out, reader.pos(), read, reader.repaired())
}

/// Reads the text whole and byte by byte.
fn read(style: LiteralStyle, text: &str) -> Outcome {
    let outcome = whole(style, text);
    let bytes: Vec<usize> = (0..=text.len()).collect();
    assert_eq!(outcome, cuts(style, text, &bytes), "{text}");
    outcome
}

fn value(style: LiteralStyle, text: &str) -> Option<(Value, bool)> {
    let (out, pos, read, repaired) = read(style, text);
    if read == Read::Fail {
        return None;
    }
    assert_eq!((read, pos), (Read::Done, text.trim_end_matches(['.', ']']).len()), "{text}");
    Some((serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}")), repaired))
}

#[test]
fn reads_python() {
    for (text, expected) in [
        (")", json!({})),
        (" )", json!({})),
        ("city='Paris', n = 3)].", json!({"city": "Paris", "n": 3})),
        (
            r"city='Martha\'s Vineyard', metric='\'cool\'')",
            json!({"city": "Martha's Vineyard", "metric": "'cool'"}),
        ),
        (
            "x=[1,{\"a\":None}, True,], y=(), z=(1,), w=(1, 2.5))",
            json!({"x": [1, {"a": null}, true], "y": [], "z": [1], "w": [1, 2.5]}),
        ),
        (
            "payload={'r':[{'n':\"w\"}],'e':{}, 7: 'x',},)",
            json!({"payload": {"r": [{"n": "w"}], "e": {}, "7": "x"}}),
        ),
        (r#"q="\d+\,\x41\u00e9\U0001F600\101\n\q")"#, json!({"q": "\\d+\\,Aé😀A\n\\q"})),
        (r#"q="\ud83d\ude00 \ud83d \udc00x \uD83D\u0041")"#, json!({"q": "😀 \u{fffd} \u{fffd}x \u{fffd}A"})),
        (r#"q=r"\d\"+", p=u'a', e='', e2="")"#, json!({"q": "\\d\\\"+", "p": "a", "e": "", "e2": ""})),
        (
            "q='''it's\n\"two\" ''lines'', \\\nno''', d=\"\"\"a\"b\"\"\")",
            json!({"q": "it's\n\"two\" ''lines'', no", "d": "a\"b"}),
        ),
        (
            "n=-1_000, h=0xff, f=.5, g=1., e=1e-3)",
            json!({"n": -1000, "h": 255, "f": 0.5, "g": 1.0, "e": 0.001}),
        ),
        ("größe='杭州')", json!({"größe": "杭州"})),
        ("n=9007199254740993)", json!({"n": 9_007_199_254_740_993_i64})),
        ("a=\")]\", b='x}')", json!({"a": ")]", "b": "x}"})),
    ] {
        assert_eq!(value(PYTHON, text), Some((expected, false)), "{text}");
    }
}

#[test]
fn repairs_python() {
    for (text, expected) in [
        ("role=null, a=true)", json!({"role": null, "a": true})),
        ("c='cat > f << EOF\nimport csv\nEOF')", json!({"c": "cat > f << EOF\nimport csv\nEOF"})),
        // Quotes that are not escaped.
        ("c='Martha's Vineyard')]", json!({"c": "Martha's Vineyard"})),
        (
            r#"c='python3 -c "print(latex(3*x, s='\,'))"')]"#,
            json!({"c": "python3 -c \"print(latex(3*x, s='\\,'))\""}),
        ),
        ("c='print('hi')')", json!({"c": "print('hi')"})),
    ] {
        assert_eq!(value(PYTHON, text), Some((expected, true)), "{text}");
    }
}

#[test]
fn refuses_what_python_has_to_evaluate() {
    for (text, pos) in [
        ("x=y)", 2),
        ("x=f(1))", 2),
        ("x=3*y)", 3),
        ("x=1 + 2)", 4),
        ("x=1+2)", 2),
        ("x=\"a\"+\"b\")", 5),
        ("x=\"a\" \"b\")", 6),
        ("x=)", 2),
        ("x)", 1),
        ("1)", 1),
        ("'a')", 0),
        ("'a'=1)", 0),
        ("x=b'a')", 2),
        ("x=f'a')", 2),
        ("x={a: 1})", 4),
        ("x=(1))", 4),
        ("x=[1 2])", 5),
        ("x=[,])", 3),
        ("x=1,,y=2)", 4),
        ("x=1]", 3),
        ("x=\"NYC\"]", 7),
        ("x=NaN)", 2),
        ("x=-inf)", 2),
        ("x=1 # one\n)", 4),
        ("*a)", 0),
        ("x==1)", 2),
        ("x='open", 7),
        ("x=[1", 4),
        ("", 0),
    ] {
        let (_, at, outcome, _) = read(PYTHON, text);
        assert_eq!((at, outcome), (pos, Read::Fail), "{text}");
    }
}

#[test]
fn reads_bare_keys_and_own_quotes() {
    for (text, expected, repaired) in [
        ("}", json!({}), false),
        (
            "location:<|\"|>New York<|\"|>,nested:[1, 2, {inner:<|\"|>v<|\"|>}]}",
            json!({"location": "New York", "nested": [1, 2, {"inner": "v"}]}),
            false,
        ),
        (
            "a:<|\"|>x <|\"| }<tool_call|> \\n \"<<|\"|>,b.c-d e:-7}",
            json!({"a": "x <|\"| }<tool_call|> \\n \"<", "b.c-d e": -7}),
            false,
        ),
        ("f:false,n:null,o:{},x:3.25}", json!({"f": false, "n": null, "o": {}, "x": 3.25}), false),
        ("\"a\":\"b\\n\", '<|\"|>':'d'}", json!({"a": "b\n", "<|\"|>": "d"}), true),
        ("<|\"|>k<|\"|>:1}", json!({"k": 1}), true),
        (
            "city: New York ,url:http://x/?a=b, zip:007}",
            json!({"city": "New York", "url": "http://x/?a=b", "zip": "007"}),
            true,
        ),
        ("a:x<|\"|>,b:y, z <|\"|>}", json!({"a": "x", "b": "y, z"}), true),
        ("a='x',b=1}", json!({"a": "x", "b": 1}), true),
        ("a:[x, y,],b:True,}", json!({"a": ["x", "y"], "b": true}), true),
    ] {
        assert_eq!(value(GEMMA, text), Some((expected, repaired)), "{text}");
    }
    let (out, ..) = read(FUNCTION_GEMMA, "k:<escape>v<esc <escape>,n:1}");
    assert_eq!(out, r#"{"k":"v<esc ","n":1}"#);
    for text in
        ["city:}", "city:Paris]<tool_call|>", "a}", ":1}", "a:[}", "a:<|\"|>,b:1}", "a:<|\"|>x", "a,b:1}"]
    {
        assert_eq!(read(GEMMA, text).2, Read::Fail, "{text}");
    }
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| format!("x={}{})", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(whole(PYTHON, &nested(MAX_DEPTH - 1)).2, Read::Done);
    let (_, pos, outcome, _) = whole(PYTHON, &nested(MAX_DEPTH));
    assert_eq!((pos, outcome), (MAX_DEPTH + 1, Read::Fail));
}

#[test]
fn writes_as_a_model_would() {
    let arguments = json!({"city": "a \"b\"\n\\", "n": 1, "l": [true, null, {"k": 0.5}]});
    let arguments = arguments.as_object().unwrap();
    assert_eq!(write(PYTHON, arguments).unwrap(), r#"city="a \"b\"\n\\", n=1, l=[True, None, {"k": 0.5}]"#);
    assert_eq!(write(GEMMA, arguments).unwrap(), "city:<|\"|>a \"b\"\n\\<|\"|>,n:1,l:[true,null,{k:0.5}]");
    let none = |style, arguments: Value| assert_eq!(write(style, arguments.as_object().unwrap()), None);
    none(PYTHON, json!({"a-b": 1}));
    none(GEMMA, json!({"a:b": 1}));
    none(GEMMA, json!({"a": {"": 1}}));
    none(GEMMA, json!({"a": "x<|\"|>y"}));
}

fn text() -> impl Strategy<Value = String> {
    vec(
        prop_oneof!["[a-z ]{1,3}", "[\"'\\\\<|>\n\r\t,:={}()\\[\\]#]", any::<char>().prop_map(String::from)],
        0..8,
    )
    .prop_map(|parts| parts.concat())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-z_]{1,4}", inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    vec(("[a-z_]{1,4}", json_value()), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

/// Text in which everything the notations know is frequent.
fn garbage() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b=",
        "c:",
        "=",
        ":",
        ",",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "'''",
        "\"\"\"",
        "\\",
        "\\u",
        "d83d",
        "\\ude00",
        "\\x4",
        "1",
        "-",
        ".5",
        "0x",
        "True",
        "null",
        "r",
        "b'",
        " ",
        "\n",
        "\r",
        "é",
        "😀",
        "<|\"|>",
        "<|\"",
        "<",
        "|>",
        "x='y'",
        "k:<|\"|>v<|\"|>",
        "#",
    ]);
    vec(piece, 0..16).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn reads_back_what_is_written(arguments in arguments(), at in vec(0_usize..400, 0..8)) {
        for style in [PYTHON, GEMMA, FUNCTION_GEMMA] {
            let Some(text) = write(style, &arguments) else { continue };
            let text = text + if style.is_python() { ")" } else { "}" };
            let mut at = at.clone();
            at.sort_unstable();
            at.retain(|end| *end < text.len());
            let (out, pos, read, repaired) = cuts(style, &text, &at);
            prop_assert_eq!((pos, read, repaired), (text.len(), Read::Done, false), "{}", text);
            // Both come from text: a number is only as exact as its reader.
            let given = serde_json::to_string(&arguments).unwrap();
            let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
            prop_assert_eq!(value(&given), value(&out));
        }
    }

    #[test]
    fn cuts_do_not_matter(text in garbage(), at in vec(0_usize..80, 0..8)) {
        for style in [PYTHON, GEMMA] {
            let outcome = read(style, &text);
            let mut at = at.clone();
            at.sort_unstable();
            at.retain(|end| *end < text.len());
            prop_assert_eq!(&outcome, &cuts(style, &text, &at));
            if outcome.2 == Read::Done {
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&outcome.0).is_ok(), "{}", outcome.0);
            }
        }
    }
}
