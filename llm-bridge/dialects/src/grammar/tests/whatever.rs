//! Whatever a model may have to write can be written: tags in texts, names of members, and long ids.

use serde_json::json;

use super::{
    super::{expression::Rules, scalar::text_without},
    texts::{Dice, lets_through},
    value_of,
};

#[test]
fn b14_a_text_has_all_but_what_ends_it() {
    let ends = ["</parameter>", "<parameter=", "</tool_call>", "]<]end[", "<", "<|x|>"];
    let without = |ends: &[&str]| {
        let mut rules = Rules::default();
        let text = text_without(ends, (0, None), &mut rules).unwrap();
        move |one: &str| lets_through(&text, &rules, one)
    };
    let tags = without(&ends[..4]);
    for text in [
        "",
        "<p>hi</p>\n<table></table>",
        "Vec<Vec<u8>> a << b <<< c",
        "</para <</parameters <parameter> ]<]en[d].",
        "fn f(x: &str) -> Option<String> { None }",
    ] {
        assert!(tags(text), "{text}");
    }
    // The last ones end within the beginning of one, which what stands behind the text may complete.
    for text in [
        "</parameter>",
        "a<</parameter>b",
        "<<parameter=x",
        "<p></tool_call>",
        "]<]<]end[",
        "a<",
        "]<]</para",
    ] {
        assert!(!tags(text), "{text}");
    }
    let mut rules = Rules::default();
    let some = text_without(&ends[..4], (1, None), &mut rules).unwrap();
    for (text, fits) in [("", false), ("\n", false), ("a", true), ("<p>\nhi", true), ("</parameter>", false)]
    {
        assert_eq!(lets_through(&some, &rules, text), fits, "{text}");
    }
    let strict = without(&ends);
    assert!(strict("a > b ]] c") && !strict("a < b"));
    let mut dice = Dice(3);
    let mut rules = Rules::default();
    let text = text_without(&ends[..4], (0, None), &mut rules).unwrap();
    for _ in 0..2000 {
        let mut written = String::new();
        dice.write(&text, &rules, &mut written);
        assert!(ends[..4].iter().all(|end| !written.contains(end)), "{written}");
    }
}

#[test]
fn b14_members_without_a_schema_have_any_name_and_ids_all_their_digits() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let headers = value_of(&schema).unwrap();
    for name in ["Content-Type", "x", "a b.c/d:é", &"n".repeat(64)] {
        assert!(headers(&format!("{{\"{name}\": \"v\"}}")), "{name}");
    }
    for name in ["", "a\"b", "a\\nb", "a\nb", &"n".repeat(65)] {
        assert!(!headers(&format!("{{\"{name}\": \"v\"}}")), "{name}");
    }
    for bounds in [json!({}), json!({"minimum": 1})] {
        let mut schema = bounds;
        schema["type"] = "integer".into();
        let id = value_of(&schema).unwrap();
        assert!(
            id("1234567890123456789") && id("123456789012345678") && !id("12345678901234567890"),
            "{schema}"
        );
    }
}
