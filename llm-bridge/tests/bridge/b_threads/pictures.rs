//! Pictures that tools return, and that models with eyes never see.

use registry_core::{Content, ToolPolicy, ToolResult};
use serde_json::{Value, json};

use super::{Thread, expect_continued, texts};
use crate::support::{Answer, Rack, Reply, Setup, user};

/// The smallest PNG: one white pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

/// With `screenshot`, which returns these parts.
async fn with_screenshot(parts: Vec<Content>, replies: impl IntoIterator<Item = Reply>) -> Rack {
    let result = parts.into_iter().fold(ToolResult::new("A screenshot."), ToolResult::with_content);
    let setup = Setup::bare().plain_tool("screenshot", ToolPolicy::new(), move |_| {
        let result = result.clone();
        async { Ok(result) }
    });
    setup.start(replies).await
}

fn picture() -> Content {
    Content::Image { data: PNG.into(), mime_type: "image/png".into() }
}

fn text(text: &str) -> Content {
    Content::Text { text: text.to_owned() }
}

fn look() -> Reply {
    Answer::new().call("c", "screenshot", &json!({})).into()
}

/// The pictures in messages, as the model gets them.
fn pictures(messages: &[Value]) -> Vec<&Value> {
    let parts = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    parts.filter(|part| part["type"] == "image_url").map(|part| &part["image_url"]["url"]).collect()
}

/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1746>: the chat shows the picture that a tool returned, the model never gets it and makes up what
/// is on it.
#[tokio::test]
async fn g12_the_picture_of_a_tool_is_before_the_model_in_the_same_turn() {
    let _thread = Thread("https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1746");
    for stream in [true, false] {
        let rack = with_screenshot(vec![picture()], [look(), Reply::text("A white dot.")]).await;
        rack.ask(stream).await.expect_end("A white dot.");
        let asked = rack.upstream.asked();
        assert_eq!(pictures(asked[1].messages()), [&json!(format!("data:image/png;base64,{PNG}"))]);
    }
}

/// <https://github.com/openai/codex/issues/4819>: a tool returns texts and pictures in turns, and the model reads Base64 where the pictures are.
#[tokio::test]
async fn g12_texts_and_pictures_of_one_result_are_told_apart() {
    let _thread = Thread("https://github.com/openai/codex/issues/4819");
    let parts = vec![text("before"), picture(), text("after"), picture()];
    let rack = with_screenshot(parts, [look(), Reply::text("Twice a white dot.")]).await;
    rack.ask(true).await.expect_end("Twice a white dot.");
    let asked = rack.upstream.asked();
    let messages = asked[1].messages();
    assert_eq!(pictures(messages).len(), 2);
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap()["content"].to_string();
    assert!(result.contains("before") && result.contains("after") && !result.contains("iVBOR"), "{result}");
}

/// <https://github.com/chatboxai/chatbox/issues/3919>: the JSON of a result with a picture is given to the model as text, megabytes of it. A model without eyes
/// gets a description in its place.
#[tokio::test]
async fn g12_no_model_reads_a_picture_as_base64() {
    let _thread = Thread("https://github.com/chatboxai/chatbox/issues/3919");
    let no_sight =
        Reply::error(500, "image input is not supported - hint: you may need to provide the mmproj");
    let replies = [look(), no_sight, Reply::text("I cannot see it."), Reply::text("No.")];
    let rack = with_screenshot(vec![picture()], replies).await;
    rack.ask(true).await.expect_end("I cannot see it.");
    rack.ask_with(true, json!({"messages": [user("And now?")]})).await.expect_end("No.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[1].text.matches(PNG).count(), 1, "as a picture, once");
    for told in &asked[2..] {
        assert!(!told.text.contains("iVBOR"), "{}", told.text);
    }
    assert!(
        asked[2].text.contains("1 x 1") || asked[2].text.contains("1 × 1"),
        "it is told of: {}",
        asked[2].text
    );
}

/// <https://github.com/unslothai/unsloth/issues/10057>: of the picture that an MCP server returns the model reads that one is shown to the user, and in the
/// next turn it is not there either.
#[tokio::test]
async fn g12_the_picture_of_a_tool_is_there_in_the_next_turn() {
    let _thread = Thread("https://github.com/unslothai/unsloth/issues/10057");
    let replies = [look(), Reply::text("A white dot."), Reply::text("White.")];
    let rack = with_screenshot(vec![picture()], replies).await;
    let shown = rack.ask_with(true, texts(&["Look."])).await;
    shown.expect_end("A white dot.");
    rack.ask_with(true, texts(&["Look.", &shown.content, "Which colour?"])).await.expect("White.");
    let asked = rack.upstream.asked();
    for asked in &asked[1..] {
        assert_eq!(pictures(asked.messages()), [&json!(format!("data:image/png;base64,{PNG}"))]);
        assert!(!asked.text.contains("displayed to the user"), "{}", asked.text);
    }
    expect_continued(&asked);
}
