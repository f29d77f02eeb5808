//! Types of arguments, results and failures: requirements P2 and B12.

use std::{borrow::Cow, error::Error};

use registry_core::{ErrorKind, Registry, prelude::*, testing::TestHost};

/// What is measured.
#[args]
#[output]
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    /// Degrees.
    #[arg(default = 0.7, range = 0.1..=99.9)]
    celsius: f32,
    /// Earlier ones.
    #[arg(default = [0.1, 0.2])]
    before: Vec<f32>,
}

impl Default for Measured {
    fn default() -> Self {
        Self { celsius: 20.1, before: vec![0.3] }
    }
}

/// Gives back what was measured.
#[tool]
async fn types_measured(
    /// What was measured.
    #[arg(default = Measured::default())]
    measured: Measured,
    /// What is added.
    #[arg(default = 0.7, range = 0.7..=1.0, example = 0.9)]
    add: f32,
) -> Measured {
    Measured { celsius: measured.celsius + add - 0.7, ..measured }
}

/// Gives the temperature.
#[tool]
async fn types_degrees() -> f32 {
    20.1
}

/// Lists temperatures.
#[tool]
async fn types_table() -> Table {
    Table::of([Measured::default()]).row((20.1_f32, 0.1_f32))
}

#[tokio::test]
async fn p2_a_number_has_the_digits_with_which_it_was_written() {
    let host = TestHost::new().build();
    let answer = async |name| host.call(name, json!({})).await.for_model();
    assert_eq!(answer("types_degrees").await, "20.1");
    assert_eq!(answer("types_measured").await, r#"{"celsius":20.1,"before":[0.3]}"#);
    assert_eq!(answer("types_table").await, "celsius,before\n20.1,[0.3]\n20.1,0.1\n");
    let tool = host.tool("types_measured").unwrap();
    let properties = &tool.spec().input_schema["properties"];
    assert_eq!(
        properties["add"],
        json!({"type": "number", "minimum": 0.7, "maximum": 1.0, "default": 0.7, "examples": [0.9], "description": "What is added."})
    );
    assert_eq!(properties["measured"]["default"], json!({"celsius": 20.1, "before": [0.3]}));
    let fields = &properties["measured"]["properties"];
    assert_eq!(
        (&fields["celsius"]["default"], &fields["before"]["default"]),
        (&json!(0.7), &json!([0.1, 0.2]))
    );
    assert_eq!(fields["celsius"]["maximum"], json!(99.9));
    let found = registry_core::testing::inconsistencies(module_path!());
    assert!(
        found.iter().all(|fault| !fault.starts_with("types_") || fault.starts_with("types_draw")),
        "{found:?}"
    );
}

/// Fails with an error of no type.
#[tool]
async fn types_boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    Err("It is closed.".into())
}

fn closed() -> Result<String, Cow<'static, str>> {
    Err("It is closed.".into())
}

fn boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    Err(ToolError::invalid("It is closed.").into())
}

/// Fails with what `?` does not take.
#[tool]
async fn types_text(
    /// Whether with a text.
    text: bool,
) -> Result<String, ToolError> {
    if text { closed().map_err(ToolError::of) } else { boxed().map_err(ToolError::of) }
}

#[tokio::test]
async fn b12_a_tool_fails_with_what_is_no_error_type() {
    let host = TestHost::new().build();
    for (name, arguments, kind) in [
        ("types_boxed", json!({}), ErrorKind::Failed),
        ("types_text", json!({"text": true}), ErrorKind::Failed),
        // Of a `ToolError` nothing is lost on the way.
        ("types_text", json!({"text": false}), ErrorKind::InvalidArguments),
    ] {
        let error = host.call(name, arguments).await.result.unwrap_err();
        assert_eq!((error.message(), error.kind()), ("It is closed.", kind), "{name}");
    }
}

/// Has another name than its function.
#[tool(name = "types_renamed")]
async fn types_function() {}

#[test]
fn b12_a_tool_knows_its_function() {
    let host = TestHost::new().build();
    assert_eq!(host.tool("types_renamed").unwrap().function(), Some("types_function"));
}

type Bytes = Vec<u8>;
type Colour = [u8; 3];

/// A drawing.
#[output]
struct Drawing {
    /// Its name.
    name: String,
    /// As a file.
    file: Bytes,
    /// What it is painted with.
    colours: Vec<Colour>,
}

/// Draws with bytes by other names.
#[tool]
async fn types_drawing(
    /// What it is like.
    sample: Option<Bytes>,
    /// What it is painted with.
    colour: Colour,
) -> Drawing {
    Drawing { name: String::new(), file: sample.unwrap_or_default(), colours: vec![colour] }
}

/// Draws and gives the bytes.
#[tool]
async fn types_drawn() -> Result<Bytes, ToolError> {
    Ok(Vec::new())
}

#[test]
fn b19_bytes_by_another_name_are_found_where_they_would_be_numbers() {
    let host = TestHost::new().build();
    let found = |name: &str| host.tool(name).unwrap().inconsistencies();
    let [taken, returned] = found("types_drawing").try_into().unwrap();
    assert!(
        taken.starts_with("`sample` is a list of numbers, one for each byte: take a `String`"),
        "{taken}"
    );
    assert!(
        returned.starts_with("`file` is a list of numbers, one for each byte: return a `File`"),
        "{returned}"
    );
    let [returned] = found("types_drawn").try_into().unwrap();
    assert!(returned.starts_with("the result is a list of numbers"), "{returned}");
}

/// Is there by its condition. Use it to see that.
#[tool]
#[cfg_attr(all(), cfg(all()))]
async fn types_there() -> &'static str {
    "there"
}

/// Is left out by its condition, with what the attribute writes.
#[tool]
#[cfg_attr(all(), cfg(any()))]
async fn types_left_out() -> Nothing {
    Nothing
}

/// Is left out by its condition, which stands before.
#[cfg_attr(all(), cfg(any()))]
#[tool]
async fn types_left_out_before() -> Nothing {
    Nothing
}

#[test]
fn k23_a_condition_in_cfg_attr_leaves_a_tool_out_whole() {
    let registry = Registry::builder().build().unwrap();
    assert!(registry.get("types_there").is_some());
    for name in ["types_left_out", "types_left_out_before"] {
        assert!(registry.get(name).is_none(), "{name}");
    }
}
