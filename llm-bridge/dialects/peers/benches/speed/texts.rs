//! The texts that are read.

use peers::case::Tool;
use serde_json::json;

/// How a text writes its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// None at all.
    Prose,
    /// As JSON between marks.
    Json,
    /// As tags.
    Xml,
}

/// A text, and what is in it.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) title: &'static str,
    pub(crate) form: Form,
    pub(crate) text: String,
    pub(crate) calls: usize,
    /// Most of it is one argument.
    pub(crate) argument: bool,
}

pub(crate) fn texts() -> Vec<Text> {
    let text = |title, form, text, calls, argument| Text { title, form, text, calls, argument };
    let several =
        |form| (0..20).map(|number| call(form, &format!("Oslo {number}"))).collect::<Vec<_>>().join("\n");
    vec![
        text("prose, 100 KB", Form::Prose, prose(100_000), 0, false),
        text("JSON, small call", Form::Json, call(Form::Json, "Oslo"), 1, false),
        text("JSON, 20 calls", Form::Json, several(Form::Json), 20, false),
        text("JSON, 10 KB argument", Form::Json, call(Form::Json, &argument(10_000)), 1, true),
        text("JSON, 100 KB argument", Form::Json, call(Form::Json, &argument(100_000)), 1, true),
        text("XML-like, small call", Form::Xml, call(Form::Xml, "Oslo"), 1, false),
        text("XML-like, 20 calls", Form::Xml, several(Form::Xml), 20, false),
        text("XML-like, 10 KB argument", Form::Xml, call(Form::Xml, &argument(10_000)), 1, true),
        text("XML-like, 100 KB argument", Form::Xml, call(Form::Xml, &argument(100_000)), 1, true),
    ]
}

/// The tool that is offered.
pub(crate) fn tools() -> Vec<Tool> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    vec![Tool { name: "write".into(), parameters: Some(schema) }]
}

fn prose(bytes: usize) -> String {
    let line = "Nothing of what is written on this line is a call, it goes on and on as answers do, and then it ends.\n";
    line.repeat(bytes / line.len() + 1)
}

/// As it stands in an argument: one angle bracket and one escape a line.
fn argument(bytes: usize) -> String {
    let line = "total = price * number; // a < b, so nothing overflows here\\n";
    line.repeat(bytes / line.len() + 1)
}

fn call(form: Form, text: &str) -> String {
    match form {
        Form::Prose => text.to_owned(),
        Form::Json => format!(
            "<tool_call>\n{{\"name\": \"write\", \"arguments\": {{\"text\": \"{text}\"}}}}\n</tool_call>"
        ),
        Form::Xml => format!(
            "<tool_call>\n<function=write>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>"
        ),
    }
}
