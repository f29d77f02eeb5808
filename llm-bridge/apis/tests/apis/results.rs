//! Media in the results of tools, over the wires whose results are text.

use serde_json::{Value, json};
use toolrack_apis::{
    Call, Content, Media, MediaKind, MediaSource, Message, Part, Request, Role, ToolResult, Wire,
    move_media_behind_results, ollama::OllamaWire, openai::OpenAiWire,
};

const PNG: &str = "iVBORw0KGgoAAAA=";

fn picture(data: &str) -> Part {
    let media = Media::new(MediaKind::Image, MediaSource::Data(data.into()));
    Content::Media(Media { media_type: Some("image/png".into()), ..media }).into()
}

fn text(text: &str) -> Part {
    Content::Text(text.into()).into()
}

fn calls(calls: &[(&str, &str)]) -> Message {
    let calls = calls.iter().map(|(id, name)| Content::Call(Call::new(*id, *name, "{}")).into());
    Message::new(Role::Assistant, calls.collect())
}

fn result(id: &str, parts: Vec<Part>) -> Message {
    Message::result(ToolResult { call_id: id.into(), parts, ..ToolResult::default() })
}

fn sent(wire: &dyn Wire, messages: Vec<Message>) -> (Vec<Value>, Vec<String>) {
    let encoded = wire.request(&Request { messages, ..Request::default() }, "");
    let mut body: Value = serde_json::from_slice(encoded.http.body()).unwrap();
    let Value::Array(messages) = body["messages"].take() else { panic!("{body}") };
    (messages, encoded.omissions.iter().map(ToString::to_string).collect())
}

fn two_rounds() -> Vec<Message> {
    vec![
        Message::text(Role::User, "Look."),
        calls(&[("c1", "camera"), ("c2", "clock"), ("c3", "camera")]),
        result("c1", vec![text("Front."), picture(PNG), picture("BBBB")]),
        result("c2", vec![text("noon")]),
        result("c3", vec![picture("CCCC")]),
        calls(&[("c4", "camera")]),
        result("c4", vec![picture("DDDD")]),
        Message::text(Role::User, "Well?"),
    ]
}

const LABEL: &str = ", returned by the tool `camera` in the result of call `";

fn label(number: u32, id: &str) -> String {
    format!("[picture {number}{LABEL}{id}`, not sent by the user]")
}

#[test]
fn g12_chat_completions_have_the_pictures_of_a_round_behind_its_results() {
    let (messages, omissions) = sent(&OpenAiWire, two_rounds());
    let image = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    let words = |text: String| json!({"type": "text", "text": text});
    let tool = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let lines = "Front.\n[picture 1: in the message after the results]\n[picture 2: in the message after the results]";
    assert_eq!(messages.len(), 9);
    assert_eq!(
        messages[2..6],
        [
            tool("c1", lines),
            tool("c2", "noon"),
            tool("c3", "[picture 3: in the message after the results]"),
            json!({"role": "user", "content": [
                words(label(1, "c1")), image(PNG), words(label(2, "c1")), image("BBBB"), words(label(3, "c3")), image("CCCC"),
            ]}),
        ]
    );
    assert_eq!(messages[6]["role"], "assistant");
    assert_eq!(
        messages[7..],
        [
            tool("c4", "[picture 1: in the message after the results]"),
            json!({"role": "user", "content": [words(label(1, "c4")), image("DDDD"), words("Well?".into())]}),
        ]
    );
    let moved = "moved: into a message of the user behind the results";
    assert_eq!(omissions[0], format!("`messages[2].parts[0].parts[1]` {moved}"));
    assert_eq!(omissions.len(), 4);
}

#[test]
fn g12_ollama_has_the_pictures_of_a_round_behind_its_results() {
    let (messages, omissions) = sent(&OllamaWire::default(), two_rounds());
    assert_eq!(messages.len(), 9);
    assert!(messages.iter().all(|message| message["role"] != "tool" || message.get("images").is_none()));
    let labels = [label(1, "c1"), label(2, "c1"), label(3, "c3")].join("\n");
    assert_eq!(messages[5], json!({"role": "user", "content": labels, "images": [PNG, "BBBB", "CCCC"]}));
    let last = format!("{}\nWell?", label(1, "c4"));
    assert_eq!(messages[8], json!({"role": "user", "content": last, "images": ["DDDD"]}));
    assert_eq!(omissions.len(), 4, "{omissions:?}");
}

#[test]
fn g12_media_that_an_api_does_not_carry_is_described_in_its_result() {
    let media = |kind, source, name: Option<&str>| -> Part {
        Content::Media(Media { name: name.map(str::to_owned), ..Media::new(kind, source) }).into()
    };
    let parts = || {
        vec![
            media(MediaKind::Audio, MediaSource::Data("QUJD".into()), Some("a\nb.wav")),
            media(MediaKind::File, MediaSource::Text("line".into()), Some("notes")),
            media(MediaKind::Image, MediaSource::Url("https://example.com/x.png".into()), None),
        ]
    };
    let (messages, omissions) = sent(&OllamaWire::default(), vec![result("c", parts())]);
    let why = "not shown: the model server takes no such files]";
    let expected = format!(
        "[recording `a b.wav`, 3 bytes; {why}\nnotes\n\nline\n[picture, https://example.com/x.png; {why}"
    );
    assert_eq!(messages, [json!({"role": "tool", "content": expected, "tool_call_id": "c"})]);
    assert_eq!(omissions.len(), 3, "{omissions:?}");
    // These model servers may fetch it, and hear.
    let (messages, _) = sent(&OpenAiWire, vec![result("c", parts())]);
    let kinds: Vec<&Value> =
        messages[1]["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["text", "input_audio", "text", "image_url"]);
    assert!(messages[1]["content"][0]["text"].as_str().unwrap().contains("returned by a tool in the result"));
}

/// A message of one picture is not empty.
#[test]
fn g12_media_of_the_user_that_an_api_does_not_carry_is_described_in_its_place() {
    use MediaKind::{Audio, File, Image};
    let data = || MediaSource::Data("QUJD".into());
    let url = || MediaSource::Url("https://a/b".into());
    let id = || MediaSource::Id("file-1".into());
    let ollama = OllamaWire::default();
    for (wire, kind, source, said) in [
        (&ollama as &dyn Wire, Image, url(), "[picture, https://a/b; "),
        (&ollama, File, data(), "[file, 3 bytes; "),
        (&ollama, Audio, data(), "[recording, 3 bytes; "),
        (&OpenAiWire, File, url(), "[file, https://a/b; "),
        (&OpenAiWire, Image, id(), "[picture, id file-1; "),
    ] {
        let media = Media::new(kind, source);
        let message = Message::new(Role::User, vec![Content::Media(media).into()]);
        let (messages, omissions) = sent(wire, vec![message]);
        let text = format!("{said}not shown: the model server takes no such files]");
        assert_eq!(messages, [json!({"role": "user", "content": text})]);
        assert_eq!(omissions, ["`messages[0].parts[0]` described: it has no place in a message"]);
    }
    let notes = Media::new(File, MediaSource::Text("line".into()));
    let notes = Content::Media(Media { name: Some("notes".into()), ..notes });
    let (messages, omissions) = sent(&ollama, vec![Message::new(Role::User, vec![notes.into()])]);
    assert_eq!(messages[0]["content"], "notes\n\nline");
    assert_eq!(omissions, ["`messages[0].parts[0]` sent as text"]);
}

#[test]
fn g12_the_text_of_a_failed_result_says_so() {
    for (before, after) in [
        (vec![text("3")], "Error: 3"),
        (vec![text("Error: no such file")], "Error: no such file"),
        (vec![text("error 404")], "error 404"),
        (vec![text("[Changed.]\nError: no")], "[Changed.]\nError: no"),
        (vec![text("{\"error\": \"gone\"}")], "{\"error\": \"gone\"}"),
        (vec![text("Erro")], "Error: Erro"),
        (vec![text("日本語")], "Error: 日本語"),
        (vec![], "Error"),
    ] {
        for wire in [&OpenAiWire as &dyn Wire, &OllamaWire::default()] {
            let failed =
                ToolResult { call_id: "c".into(), parts: before.clone(), is_error: true, name: None };
            let (messages, omissions) = sent(wire, vec![Message::result(failed)]);
            assert_eq!(messages[0]["content"], after);
            assert_eq!(omissions, ["`messages[0].parts[0].is_error` said in the text"]);
        }
    }
}

#[test]
fn g12_a_conversation_without_media_in_results_is_not_copied() {
    let user = Message::new(Role::User, vec![text("What?"), picture(PNG)]);
    let messages = [user, calls(&[("c", "f")]), result("c", vec![text("a"), text("b")])];
    let moved = move_media_behind_results(&messages, |_| true);
    assert!(moved.iter().zip(&messages).all(|(moved, message)| std::ptr::eq(&**moved, message)));
}

#[test]
fn g12_a_picture_of_unsaid_type_gets_one_where_it_can_be_told() {
    for (data, url) in [
        (PNG, "data:image/png;base64,"),
        ("/9j/4AAQ", "data:image/jpeg;base64,"),
        ("R0lGODlh", "data:image/gif;base64,"),
        ("UklGRg==", "data:image/webp;base64,"),
        ("AAAA", "data:;base64,"),
    ] {
        let media = Media::new(MediaKind::Image, MediaSource::Data(data.into()));
        let (messages, _) =
            sent(&OpenAiWire, vec![Message::new(Role::User, vec![Content::Media(media).into()])]);
        assert_eq!(messages[0]["content"][0]["image_url"]["url"], format!("{url}{data}"));
    }
}
