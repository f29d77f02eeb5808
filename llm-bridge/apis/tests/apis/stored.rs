//! Messages as they are stored.

use proptest::prelude::*;
use serde_json::{json, value::RawValue};
use toolrack_apis::{
    Call, CallInput, Content, Media, MediaKind, MediaSource, Message, Part, Passing, Provider, RawJson,
    Reasoning, Role, Seal, SealKind, ToolResult,
};

use crate::{anthropic, chat, gemini, ollama, responses};

/// Messages of every front.
fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        chat::message().boxed(),
        responses::message().boxed(),
        ollama::message().boxed(),
        gemini::random::message().boxed(),
        anthropic::random::message().boxed(),
    ]
}

proptest! {
    #[test]
    fn b13_stored_messages_are_read_as_they_were_written(messages in proptest::collection::vec(message(), 0..5)) {
        let text = serde_json::to_string(&messages).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<Message>>(&text).unwrap(), messages);
    }

    #[test]
    fn b13_stored_messages_of_anything_never_panic(text in "[\\[\\]{}:,\"a-z0-9 ]{0,60}") {
        let _ = serde_json::from_str::<Vec<Message>>(&text);
    }
}

fn raw(text: &str) -> RawJson {
    serde_json::from_str::<&RawValue>(text).unwrap().into()
}

/// One of everything. The form is stored, so this text may get new fields, but what stands here has to be read by every later version.
#[test]
fn b13_stored_messages_have_a_stable_form() {
    let mut passing = Passing::of(Provider::Responses);
    passing.push("phase", raw("1.00"));
    passing.push("id", raw("\"m\""));
    let seal = |kind| Seal { api: Provider::Anthropic, kind, data: "s".into() };
    let media = Media {
        media_type: Some("image/png".into()),
        name: Some("a.png".into()),
        detail: Some("low".into()),
        ..Media::new(MediaKind::Image, MediaSource::Data("AA==".into()))
    };
    let custom = Call { input: CallInput::Text, ..Call::new("c2", "shell", "ls") };
    let contents: Vec<Part> = [
        Content::Reasoning(Reasoning { text: "hm".into(), seal: Some(seal(SealKind::Signature)) }),
        Content::Reasoning(Reasoning { text: String::new(), seal: Some(seal(SealKind::Encrypted)) }),
        Content::Media(media),
        Content::Media(Media::new(MediaKind::Audio, MediaSource::Url("https://a/b".into()))),
        Content::Media(Media::new(MediaKind::Video, MediaSource::Id("v".into()))),
        Content::Media(Media::new(MediaKind::File, MediaSource::Text("t".into()))),
        Content::Call(custom),
        Content::Opaque(Provider::Gemini, raw(r#"{"executableCode": [ 1e2 ]}"#)),
    ]
    .into_iter()
    .map(Part::from)
    .collect();
    let result = ToolResult {
        call_id: "c2".into(),
        name: Some("shell".into()),
        parts: vec![Part { content: Content::Text("no".into()), passing: passing.clone() }],
        is_error: true,
    };
    let messages = [
        Message { passing, ..Message::text(Role::Developer, "be brief") },
        Message::new(Role::Assistant, contents),
        Message::result(result),
        Message::text(Role::System, ""),
    ];
    let text = concat!(
        r#"[{"role":"developer","parts":[{"content":{"text":"be brief"}}],"#,
        r#""passing":{"api":"responses","fields":{"id":"m","phase":1.00}}},"#,
        r#"{"role":"assistant","parts":["#,
        r#"{"content":{"reasoning":{"text":"hm","seal":{"api":"anthropic","kind":"signature","data":"s"}}}},"#,
        r#"{"content":{"reasoning":{"text":"","seal":{"api":"anthropic","kind":"encrypted","data":"s"}}}},"#,
        r#"{"content":{"media":{"kind":"image","source":{"data":"AA=="},"media_type":"image/png","name":"a.png","detail":"low"}}},"#,
        r#"{"content":{"media":{"kind":"audio","source":{"url":"https://a/b"}}}},"#,
        r#"{"content":{"media":{"kind":"video","source":{"id":"v"}}}},"#,
        r#"{"content":{"media":{"kind":"file","source":{"text":"t"}}}},"#,
        r#"{"content":{"call":{"id":"c2","name":"shell","arguments":"ls","input":"text"}}},"#,
        r#"{"content":{"opaque":{"api":"gemini","json":{"executableCode": [ 1e2 ]}}}}]},"#,
        r#"{"role":"tool","parts":[{"content":{"result":{"call_id":"c2","name":"shell","parts":[{"content":{"text":"no"},"#,
        r#""passing":{"api":"responses","fields":{"id":"m","phase":1.00}}}],"is_error":true}}}]},"#,
        r#"{"role":"system","parts":[]}]"#,
    );
    assert_eq!(serde_json::to_string(&messages).unwrap(), text);
    assert_eq!(serde_json::from_str::<Vec<Message>>(text).unwrap(), messages);
    for &provider in Provider::ALL {
        assert_eq!(serde_json::to_value(provider).unwrap(), json!(provider.name()));
    }
}

#[test]
fn b13_stored_messages_of_a_newer_version_are_read() {
    let newer = json!([{
        "role": "assistant", "new": {},
        "passing": {"api": "ollama", "fields": {"b": 1, "a": 2}, "new": 1},
        "parts": [
            {"new": 1, "content": {"call": {"id": "c", "name": "f", "arguments": "{}", "new": 1}}},
            {"content": {"reasoning": {"new": 1}}},
            {"content": {"media": {"kind": "image", "source": {"id": "i"}, "new": 1}}},
            {"content": {"opaque": {"api": "mcp", "json": [1], "new": 1}}},
            {"content": {"result": {"call_id": "c", "new": 1}}},
        ],
    }]);
    let messages: Vec<Message> = serde_json::from_str(&newer.to_string()).unwrap();
    let [message] = &messages[..] else { panic!("{messages:?}") };
    let mut passing = Passing::of(Provider::Ollama);
    passing.push("a", raw("2"));
    passing.push("b", raw("1"));
    assert_eq!(message.passing, passing);
    assert_eq!(message.passing.get(Provider::Ollama, "b"), Some(&raw("1")));
    let contents: Vec<&Content> = message.parts.iter().map(|part| &part.content).collect();
    assert_eq!(
        contents,
        [
            &Content::Call(Call::new("c", "f", "{}")),
            &Content::Reasoning(Reasoning::default()),
            &Content::Media(Media::new(MediaKind::Image, MediaSource::Id("i".into()))),
            &Content::Opaque(Provider::Mcp, raw("[1]")),
            &Content::Result(ToolResult { call_id: "c".into(), ..ToolResult::default() }),
        ]
    );
}
