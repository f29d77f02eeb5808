//! Prompts are those of the reference, to the byte; what strangers write as templates has bounds.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use jiff::{civil::date, tz::TimeZone};
use serde_json::{Map, Value, json};
use toolrack_templates::{Conversation, MAX_SOURCE, Template, TemplateError};

/// Templates that between them have all that templates of models have.
const TEMPLATES: [(&str, &str); 5] = [
    ("parameters", include_str!("templates/parameters.jinja")),
    ("strict", include_str!("templates/strict.jinja")),
    ("tags", include_str!("templates/tags.jinja")),
    ("typed", include_str!("templates/typed.jinja")),
    ("values", include_str!("templates/values.jinja")),
];
const CONVERSATIONS: &str = include_str!("conversations.json");
/// What `reference.py --write` has written.
const EXPECTED: &str = include_str!("expected.json");

fn render(template: &str, case: &Value) -> Result<String, TemplateError> {
    let list = |name: &str| case[name].as_array().map_or(&[][..], Vec::as_slice);
    Template::new(template)?.render(&Conversation {
        tools: list("tools"),
        add_generation_prompt: case["add_generation_prompt"] == true,
        bos_token: case["bos_token"].as_str(),
        eos_token: case["eos_token"].as_str(),
        others: case["others"].as_object().cloned().unwrap_or_default(),
        now: Some(date(2026, 2, 3).at(4, 5, 6, 0).to_zoned(TimeZone::UTC).unwrap()),
        ..Conversation::new(list("messages"))
    })
}

fn error_of(template: &str) -> TemplateError {
    render(template, &json!({"messages": [{"role": "user", "content": "x"}]})).unwrap_err()
}

#[test]
fn b14_prompts_are_those_of_the_reference_to_the_byte() {
    let conversations: Map<String, Value> = serde_json::from_str(CONVERSATIONS).unwrap();
    let expected: Map<String, Value> = serde_json::from_str(EXPECTED).unwrap();
    assert_eq!(expected.len(), TEMPLATES.len() * conversations.len());
    for (name, source) in TEMPLATES {
        for (conversation, case) in &conversations {
            let place = format!("{name}/{conversation}");
            let prompt = render(source, case);
            match &expected[&place] {
                Value::String(expected) => assert_eq!(prompt.as_deref(), Ok(expected.as_str()), "{place}"),
                _ => assert!(matches!(prompt, Err(TemplateError::Refused(_))), "{place}: {prompt:?}"),
            }
        }
    }
}

#[test]
fn b14_a_template_says_why_it_refuses() {
    let error = error_of("{{ raise_exception('Only users speak, not ' ~ messages[0].role) }}");
    assert_eq!(error, TemplateError::Refused("Only users speak, not user".into()));
    let error = error_of("{% macro m() %}{{ raise_exception('no') }}{% endmacro %}{{ m() | upper }}");
    assert_eq!(error, TemplateError::Refused("no".into()));
}

#[test]
fn b14_a_broken_template_is_told_with_its_line() {
    assert!(matches!(error_of("a\n{% if %}"), TemplateError::Syntax(told) if told.contains("(line 2)")));
    assert!(
        matches!(error_of("a\n{{ messages[7].role }}"), TemplateError::Failed(told) if told.contains("(line 2)"))
    );
    assert!(matches!(error_of("{{ x | nothing }}"), TemplateError::Failed(told) if told.contains("nothing")));
    assert!(matches!(error_of("{% include 'x' %}"), TemplateError::Syntax(_)));
    assert!(matches!(error_of(&"x".repeat(MAX_SOURCE + 1)), TemplateError::SourceTooLarge(_)));
}

/// The engine reads each within the one before: some kilobytes used up the stack, and with it the program.
#[test]
fn a53_a_tag_that_nests_without_brackets_is_read_or_refused() {
    for (before, middle, after) in [
        ("not ", "1", ""),
        ("-", "1", ""),
        ("1 if 1 else ", "1", ""),
        ("", "1", "+1"),
        ("", "1", "~1"),
        ("", "1", " and 1"),
        ("", "1", " < 1"),
        ("", "1", " in [1]"),
        ("", "1", " is odd"),
        ("1**", "1", ""),
        ("", "a", ".b"),
        ("", "a", "|upper"),
        ("", "a", "[0]"),
        ("", "a", "()"),
        ("(", "1", ")"),
        ("a(", "", ")"),
        ("a|default(", "1", ")"),
    ] {
        for times in [10, 2_000, 9_000, 300_000] {
            let source = format!("{{{{ {}{middle}{} }}}}", before.repeat(times), after.repeat(times));
            if source.len() > MAX_SOURCE {
                continue;
            }
            let began = Instant::now();
            let read = Template::new(&source).and_then(|template| template.render(&Conversation::new(&[])));
            let is_refused = matches!(read, Err(TemplateError::Syntax(_)));
            assert!(is_refused || times < 10_000, "{before}{after}, {times} times: {read:?}");
            assert!(began.elapsed() < Duration::from_secs(20), "{before}{after}, {times} times");
        }
    }
    let many = format!("{{% set x = [{}] %}}{{{{ x | length }}}}", "1, ".repeat(4_000));
    assert_eq!(Template::new(&many).unwrap().render(&Conversation::new(&[])).unwrap(), "4000");
}

#[test]
fn b14_whatever_a_template_does_it_ends() {
    let deep = "{% set ns = namespace(x=[]) %}{% for i in range(9000) %}{% for j in range(9000) %}{% set ns.x = [ns.x] %}\
                {% endfor %}{% endfor %}{{ ns.x | length }}";
    let deeper = format!(
        "{{% set ns = namespace(x=[]) %}}{{% for i in range(9000) %}}{{% set ns.x = {}ns.x{} %}}{{% endfor %}}{{% for i in range(9000) %}}{{{{ ns.x == ns.x[0] }}}}{{% endfor %}}",
        "[".repeat(50),
        "]".repeat(50)
    );
    for template in [
        "{% for a in range(9000) %}{% for b in range(9000) %}{% for c in range(9000) %}{% endfor %}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(x='x') %}{% for i in range(9000) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x=['x']) %}{% for i in range(20) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x.replace('a', 'aaaaaaaaaaaaaaaa') %}{% endfor %}",
        "{{ 'x'.join(range(9000) | list) * 9000 * 9000 }}",
        "{{ range(99999999999) | list | tojson }}",
        "{% for a in range(9000) %}{% for b in range(9000) %}{{ messages | tojson }}{{ messages }}{% endfor %}{% endfor %}",
        deep,
        &deeper,
        // Lists that are doubled, in each way that there is.
        "{% set ns = namespace(x=['x']) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=['x']) %}{% for i in range(60) %}{% set ns.x = ns.x * 2 %}{% endfor %}{{ ns.x | list }}",
        "{% set ns = namespace(x=['x']) %}{% for i in range(60) %}{% set ns.x = ns.x | chain(ns.x) %}{% endfor %}{{ ns.x | list }}",
        "{% set ns = namespace(x=['x'], y=['x']) %}{% for i in range(90) %}{% set ns.x = ns.y + ns.x %}{% set ns.y = ns.x + ns.y %}{% endfor %}{{ ns.x }}",
        "{% macro m(x, n) %}{% if n %}{{ m(x + x, n - 1) }}{% else %}{{ x | tojson }}{% endif %}{% endmacro %}{{ m(['x'], 40) }}",
        &nested("[ns.x, ns.x]", "{{ ns.x == ns.y }}"),
        &nested("ns.x, ns.x", "{{ ns.x == ns.y }}"),
        &nested("{'a': ns.x, 'b': ns.x}", "{{ ns.x == ns.y }}"),
        &nested("dict(a=ns.x, b=ns.x)", "{{ ns.x }}"),
        &nested("[ns.x, ns.x]", "{{ ns.x is eq(ns.y) }}"),
        &nested("[ns.x, ns.x]", "{{ [ns.y].index(ns.x) }}"),
        &nested("[ns.x, ns.x]", "{{ [ns.y].count(ns.x) }}"),
        &nested("[ns.x, ns.x]", "{{ [ns.x, ns.y] | unique | list | length }}"),
        &nested("[ns.x, ns.x]", "{{ [ns.x, ns.y] | sort | length }}"),
        &nested("[ns.x, ns.x]", "{{ {ns.x: 1} }}"),
        &nested("[ns.x, ns.x]", "{{ ns.x in [ns.y] }}"),
        &nested("[ns.x, ns.x]", "{{ 'x' ~ ns.x }}"),
        &nested("[ns.x, ns.x]", "{{ ns.x | trim }}"),
        &nested("[ns.x, ns.x]", "{{ ns.x | wordcount }}"),
        &nested("[ns.x, ns.x]", "{{ ns.x | join('') }}"),
        &nested("[ns.x, ns.x]", "{{ ns.x | pprint }}"),
        &nested("[ns.x, ns.x]", "{{ [1] | tojson(separators=[ns.x, ns.x]) }}"),
        &nested("[ns.x, ns.x]", "{% for a in [1, 2] %}{{ loop.changed(ns.x, ns.y) }}{% endfor %}"),
        &nested(
            "[ns.x, ns.x]",
            "{% for a in range(9000) %}{% for b in range(9000) %}{% if ns.x[0] != ns.y[0] %}{% endif %}{% endfor %}{% endfor %}",
        ),
        &nested("[ns.x, ns.x]", "{{ raise_exception(ns.x) }}"),
    ] {
        let began = Instant::now();
        let error = error_of(template);
        assert!(
            matches!(
                error,
                TemplateError::TooMuchWork | TemplateError::OutputTooLarge | TemplateError::Failed(_)
            ),
            "{template}: {error}"
        );
        // Without optimizations and beside other tests.
        assert!(began.elapsed() < Duration::from_secs(30), "{template}: {:?}", began.elapsed());
    }
}

/// What a method is given was not paid for where it stands in the template itself, and took as many steps as both texts have letters.
#[test]
fn a55_texts_that_a_template_gives_to_methods_are_paid_for() {
    // The last of many that are looked for.
    let (text, many) = ("z".repeat(4_000), format!("{}z", "a".repeat(900_000)));
    for work in [
        format!("'{text}'.strip('{many}')"),
        format!("'{text}'.lstrip('{many}')"),
        format!("'{text}' | trim('{many}')"),
        format!("'{text}'.split('{many}')"),
        format!("'{text}'.partition('{many}')"),
        format!("'{text}'.find('{many}')"),
        format!("'{text}'.count('{many}')"),
    ] {
        let loops = "{% for a in range(9000) %}{% for b in range(9000) %}";
        let template = format!("{loops}{{% set x = {work} %}}{{% endfor %}}{{% endfor %}}");
        let began = Instant::now();
        assert_eq!(error_of(&template), TemplateError::TooMuchWork);
        // Without optimizations and beside other tests.
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

/// Two values that are made of themselves sixty times, and what is done with them.
fn nested(made: &str, used: &str) -> String {
    let twice = ["x", "y"].map(|name| made.replace("ns.x", &format!("ns.{name}")));
    format!(
        "{{% set ns = namespace(x=['x'], y=['x']) %}}{{% for i in range(60) %}}{{% set ns.x = {} %}}{{% set ns.y = {} %}}{{% endfor %}}{used}",
        twice[0], twice[1]
    )
}

#[test]
fn b14_a_value_nested_deep_is_written_or_refused() {
    let (open, close) = ("[".repeat(50), "]".repeat(50));
    let nested = format!(
        "{{% set ns = namespace(x=[]) %}}{{% for i in range(100) %}}{{% set ns.x = {open}ns.x{close} %}}{{% endfor %}}"
    );
    assert!(render(&format!("{nested}{{{{ ns.x }}}}"), &json!({})).unwrap().contains("..."));
    let error = error_of(&format!("{nested}{{{{ ns.x | tojson }}}}"));
    assert!(matches!(error, TemplateError::Failed(told) if told.contains("nested")));
}

#[test]
fn b14_long_conversations_have_room() {
    let text = "It's a long answer, and it goes on. ".repeat(30);
    let pair = || [json!({"role": "user", "content": text}), json!({"role": "assistant", "content": text})];
    let mut messages: Vec<Value> = std::iter::repeat_with(pair).take(1500).flatten().collect();
    messages.push(json!({"role": "user", "content": "And?"}));
    for (name, source) in TEMPLATES {
        let prompt = render(
            source,
            &json!({"messages": messages, "eos_token": "</s>", "add_generation_prompt": true}),
        );
        assert!(prompt.is_ok(), "{name}: {prompt:?}");
    }
}
