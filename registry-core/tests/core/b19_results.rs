//! What a tool may return beside values, and results that come as streams: requirement B19.

use std::time::{Duration, Instant};

use futures_util::stream;
use registry_core::{ErrorKind, handler_fn, prelude::*, testing::TestHost};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nbytes";

/// Returns a picture.
#[tool]
async fn b19_picture() -> Result<Image, ToolError> {
    Image::new(PNG)
}

/// Returns bytes that are no picture.
#[tool]
async fn b19_no_picture() -> Result<Image, ToolError> {
    Image::new("words")
}

/// Returns a sound.
#[tool]
async fn b19_sound() -> Result<Audio, String> {
    Audio::new(b"RIFF0000WAVEdata").map_err(|error| error.to_string())
}

/// Returns a file.
#[tool]
async fn b19_file() -> File {
    File::new("../out/report.csv", "a,b\n1,2\n")
}

/// Returns a table.
#[tool]
async fn b19_table(
    /// How many cells the second row has.
    #[arg(default = 2)]
    cells: usize,
) -> Table {
    Table::new(["city", "degrees"]).row(("Oslo", 3.5)).row(vec![7; cells])
}

/// Returns Markdown.
#[tool]
fn b19_markdown() -> Markdown {
    Markdown::new("**bold**")
}

/// Returns words and a picture.
#[tool]
async fn b19_pair() -> Result<(String, Image), ToolError> {
    Ok(("The front door.".to_owned(), Image::new(PNG)?))
}

/// Returns a value, a table and words.
#[tool]
async fn b19_triple() -> (u32, Table, String) {
    (2, Table::new(["a"]).row(1), "Two.".to_owned())
}

/// Returns files.
#[tool]
async fn b19_list() -> Vec<File> {
    vec![File::new("a.txt", "a"), File::new("b.txt", "b")]
}

/// Returns a tuple of values.
#[tool]
async fn b19_values() -> (String, u8) {
    ("a".to_owned(), 1)
}

/// Returns two answers for the person.
#[tool(ends_turn)]
async fn b19_ending(
    /// Whether it fails.
    #[arg(default = false)]
    fail: bool,
) -> Result<String, String> {
    if fail { Err("It broke.".to_owned()) } else { Ok("Done.".to_owned()) }
}

/// Writes words as they come.
#[tool]
async fn b19_words(
    ctx: &ToolContext,
    /// The words.
    words: &str,
) -> impl Stream<Item = String> + Send {
    ctx.status("Writing");
    stream::iter(words.split_inclusive(' ').map(str::to_owned))
}

/// Gives parts as they come.
#[tool]
fn b19_parts(
    /// Whether it breaks off.
    #[arg(default = false)]
    fail: bool,
) -> impl Stream<Item = Result<Content, ToolError>> + Send {
    let last = if fail { Err(ToolError::failed("It broke.")) } else { Ok(File::new("b.txt", "b").into()) };
    stream::iter([Ok(Markdown::new("One").into()), last])
}

/// Gives files, if it can be begun.
#[tool]
async fn b19_begun(
    /// Whether it can.
    begins: bool,
) -> Result<impl Stream<Item = File> + Send, String> {
    if begins { Ok(stream::iter([File::new("a.txt", "a")])) } else { Err("It is closed.".to_owned()) }
}

/// Never ends, and is always ready.
#[tool(timeout = secs(60))]
async fn b19_endless(
    /// What it repeats.
    piece: String,
) -> impl Stream<Item = Content> + Send {
    stream::repeat_with(move || Content::text(piece.clone()))
}

/// Never ends, piece by piece.
#[tool(timeout = millis(200))]
async fn b19_endless_text() -> impl Stream<Item = &'static str> + Send {
    stream::repeat("")
}

fn kinds(content: &[Content]) -> Vec<&'static str> {
    content.iter().map(Content::kind).collect()
}

#[tokio::test]
async fn b19_a_part_alone_is_a_result() {
    let host = TestHost::new().build();
    let result = |name: &'static str| {
        let host = &host;
        async move { host.call(name, json!({})).await.result.unwrap() }
    };
    for (name, kind, text) in [
        ("b19_picture", "image", "[image, image/png, 13 bytes, not shown here]"),
        ("b19_sound", "audio", "[sound, audio/x-wav, 16 bytes, not shown here]"),
        ("b19_file", "resource", "[file:///report.csv, text/csv, 8 bytes, not shown here]"),
        ("b19_table", "table", "city,degrees\nOslo,3.5\n7,7\n"),
        ("b19_markdown", "markdown", "**bold**"),
    ] {
        let result = result(name).await;
        assert_eq!((kinds(&result.content), &*result.for_model()), (vec![kind], text), "{name}");
        assert_eq!(result.value, Value::Null, "{name}");
    }
    // A list of numbers is never what becomes of bytes.
    let reply = host.call("b19_file", json!({})).await.to_reply();
    let blob = serde_json::to_value(&reply.content[0]).unwrap();
    assert_eq!(blob["resource"]["blob"], "YSxiCjEsMgo=");
    let wrong = host.call("b19_no_picture", json!({})).await.result.unwrap_err();
    assert!(wrong.message().starts_with("5 bytes are not a picture"), "{wrong}");
}

#[tokio::test]
async fn b19_several_parts_are_a_result() {
    let host = TestHost::new().build();
    let pair = host.call("b19_pair", json!({})).await.result.unwrap();
    assert_eq!((pair.value, kinds(&pair.content)), (json!("The front door."), vec!["image"]));
    let triple = host.call("b19_triple", json!({})).await.result.unwrap();
    assert_eq!(triple.for_model(), "2\na\n1\n\nTwo.");
    let list = host.call("b19_list", json!({})).await.result.unwrap();
    assert_eq!(kinds(&list.content), ["resource", "resource"]);
    let values = host.call("b19_values", json!({})).await.result.unwrap();
    assert_eq!((values.value, values.content.len()), (json!(["a", 1]), 0));
}

#[tokio::test]
async fn b19_a_table_alone_has_a_schema_and_a_value_for_it() {
    let host = TestHost::new().build();
    let schema = |name| host.tool(name).unwrap().spec().output_schema.clone();
    for name in ["b19_picture", "b19_file", "b19_markdown", "b19_pair", "b19_triple", "b19_list", "b19_words"]
    {
        assert_eq!(schema(name), Value::Null, "{name}");
    }
    assert_eq!(schema("b19_values")["type"], "array");
    let table = schema("b19_table");
    assert_eq!((&table["type"], &table["required"]), (&json!("object"), &json!(["columns", "rows"])));
    let result = host.call("b19_table", json!({})).await.result.unwrap();
    let value = json!({"columns": ["city", "degrees"], "rows": [["Oslo", 3.5], [7, 7]]});
    assert_eq!(result.structured(), Some(value));
}

#[tokio::test]
async fn b19_a_result_has_bounds() {
    let host = TestHost::new().build();
    let uneven = host.call("b19_table", json!({"cells": 3})).await.result.unwrap_err();
    assert_eq!(uneven.message(), "row 2 of the table has 3 cells, and there are 2 columns");

    let many = |parts: usize, bytes: usize| {
        handler_fn(move |_, _| async move {
            Ok(ToolResult::parts((0..parts).map(|_| File::new("a.bin", vec![0; bytes]))))
        })
    };
    for (parts, bytes, expected) in
        [(1001, 1, "more than 1000 parts"), (3, 10 << 20, "with Base64; 32 MiB at most")]
    {
        let handler = many(parts, bytes);
        let tool = registry_core::ToolSpec::new("many", json!({"type": "object"}));
        let host = TestHost::new().build();
        host.registry().register(tool, registry_core::ToolPolicy::new(), Some(handler)).unwrap();
        let error = host.call("many", json!({})).await.result.unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.feedback().contains("Ask it for less"), "{}", error.feedback());
    }

    let value = |value: Value| {
        let host = TestHost::new().build();
        let tool = registry_core::ToolSpec::new("large", json!({"type": "object"}));
        let give = handler_fn(move |_, _| std::future::ready(Ok(ToolResult::new(value.clone()))));
        host.registry().register(tool, registry_core::ToolPolicy::new(), Some(give)).unwrap();
        async move { host.call("large", json!({})).await.result }
    };
    let text = |mib: usize| "x".repeat(mib << 20);
    for large in [json!(text(33)), json!([text(20), text(13)]), json!({"a": {"b": text(33)}})] {
        let error = value(large).await.unwrap_err();
        assert!(error.message().contains("32 MiB at most"), "{error}");
        assert!(error.feedback().contains("Ask it for less"), "{}", error.feedback());
    }
    for fits in [json!(text(32)), json!([text(20), text(11)])] {
        assert_eq!(value(fits.clone()).await.unwrap().value, fits);
    }
    // What is said beside counts as well.
    let beside = handler_fn(|_, _| async {
        Ok(ToolResult::new("x".repeat(20 << 20)).with_message("x".repeat(20 << 20)))
    });
    let tool = registry_core::ToolSpec::new("beside", json!({"type": "object"}));
    host.registry().register(tool, registry_core::ToolPolicy::new(), Some(beside)).unwrap();
    assert!(host.call("beside", json!({})).await.result.unwrap_err().message().contains("32 MiB at most"));
}

#[tokio::test]
async fn b19_the_audit_has_what_the_parts_are_and_not_what_is_in_them() {
    let host = TestHost::new().build();
    host.call("b19_pair", json!({})).await;
    let record = host.records().pop().unwrap();
    let told = json!([{"type": "image", "media_type": "image/png", "bytes": 13}]);
    assert_eq!(record.audit["content"], told);
    assert!(!format!("{record:?}").contains("iVBOR"));
    host.call("b19_words", json!({"words": "a b"})).await;
    assert!(!host.records().pop().unwrap().audit.contains_key("content"));
}

#[tokio::test]
async fn b19_a_stream_is_shown_as_it_comes_and_the_model_gets_the_whole() {
    let host = TestHost::new().build();
    let words = host.call("b19_words", json!({"words": "one two three"})).await;
    assert_eq!(words.for_model(), "one two three");
    let pieces = ["one ", "two ", "three"].map(Content::text);
    assert_eq!(host.streamed(), pieces);
    assert_eq!(host.statuses(), ["Writing"]);
    assert_eq!(host.call("b19_words", json!({"words": ""})).await.result.unwrap().value, Value::Null);

    let host = TestHost::new().build();
    let parts = host.call("b19_parts", json!({})).await;
    assert_eq!(kinds(&parts.result.unwrap().content), ["markdown", "resource"]);
    assert_eq!(kinds(&host.streamed()), ["markdown", "resource"]);
    let broken = host.call("b19_parts", json!({"fail": true})).await;
    assert_eq!(broken.result.unwrap_err().message(), "It broke.");
    assert_eq!(kinds(&host.streamed()), ["markdown", "resource", "markdown"]);

    let begun = host.call("b19_begun", json!({"begins": true})).await;
    assert_eq!(kinds(&begun.result.unwrap().content), ["resource"]);
    let closed = host.call("b19_begun", json!({"begins": false})).await;
    assert_eq!(closed.result.unwrap_err().message(), "It is closed.");
}

#[tokio::test]
async fn b19_a_stream_has_bounds_and_can_be_stopped() {
    let host = TestHost::new().build();
    let many = host.call("b19_endless", json!({"piece": ""})).await.result.unwrap_err();
    assert!(many.message().contains("more than 1000 parts"), "{many}");
    let large = host.call("b19_endless", json!({"piece": "x".repeat(1 << 20)})).await.result.unwrap_err();
    assert!(large.message().contains("32 MiB at most"), "{large}");
    // It never waits for anything, and yet its time runs out.
    let began = Instant::now();
    let endless = host.call("b19_endless_text", json!({})).await.result.unwrap_err();
    assert_eq!(endless.kind(), ErrorKind::Timeout);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(host.records().pop().unwrap().error, Some(ErrorKind::Timeout));
}

#[tokio::test]
async fn b19_a_result_may_end_the_turn() {
    let host = TestHost::new().build();
    let done = host.call("b19_ending", json!({})).await;
    assert!(done.to_reply().ends_turn && done.result.unwrap().ends_turn);
    assert!(host.call("b19_ending", json!({"fail": true})).await.result.is_err());
    let other = host.call("b19_markdown", json!({})).await.to_reply();
    assert!(!other.ends_turn && serde_json::to_value(&other).unwrap().get("ends_turn").is_none());
    assert!(ToolResult::new(1).ends_turn().ends_turn);
}
