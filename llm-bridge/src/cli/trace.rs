//! `toolrack trace`: a turn as a tree.

use std::process::ExitCode;

use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;

use super::{
    Settings,
    out::{print_line, second},
    running::{Asked, Server},
    terminal::one_line,
};
use crate::server::{SpanReply, TraceReply};

/// Spans that are deeper in each other are not shown.
const MAX_DEPTH: usize = 64;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The id of the trace, from the header `x-toolrack-trace` of an answer, or of a call, as `toolrack audit` shows it
    id: String,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(arguments: Arguments, settings: &Settings) -> Result<ExitCode, String> {
    let server = Server::new(&arguments.asked.server, settings)?;
    let answer = server.ask(Method::GET, &["api", "traces", &arguments.id]).await?;
    if arguments.asked.json {
        print_line(format_args!("{answer:#}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let trace: TraceReply = serde_json::from_value(answer)
        .map_err(|error| format!("the server's trace cannot be read: {error}"))?;
    for line in lines(&trace) {
        print_line(line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(trace: &TraceReply) -> Vec<String> {
    let began = trace.spans.first().map_or(Timestamp::UNIX_EPOCH, |span| span.began);
    let mut lines = vec![format!("{} began {}", one_line(&trace.trace_id), second(began))];
    let is_here = |id: &String| trace.spans.iter().any(|span| span.id == *id);
    let is_root = |span: &&SpanReply| !span.parent.as_ref().is_some_and(is_here);
    for root in trace.spans.iter().filter(is_root) {
        add(trace, root, began, 0, &mut lines);
    }
    lines
}

fn add(trace: &TraceReply, span: &SpanReply, began: Timestamp, depth: usize, lines: &mut Vec<String>) {
    let after = span.began.duration_since(began).as_millis();
    let indent = "  ".repeat(depth);
    let name = format!("{indent}{}", one_line(&span.name));
    lines.push(
        format!("{after:>7} ms  {name:<44} {:>7} ms{}", span.duration_ms, details(span))
            .trim_end()
            .to_owned(),
    );
    if depth < MAX_DEPTH {
        for child in trace.spans.iter().filter(|child| child.parent.as_ref() == Some(&span.id)) {
            add(trace, child, began, depth + 1, lines);
        }
    }
}

/// What a person wants to know of a span beside its time.
fn details(span: &SpanReply) -> String {
    let text = |name: &str| {
        span.attributes.get(name).map(|value| match value {
            Value::String(text) => one_line(text),
            Value::Array(items) => {
                items.iter().filter_map(Value::as_str).map(one_line).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        })
    };
    let tokens = text("gen_ai.usage.input_tokens").zip(text("gen_ai.usage.output_tokens"));
    let parts = [
        tokens.map(|(input, output)| format!("{input} tokens in, {output} out")),
        text("gen_ai.response.finish_reasons"),
        text("error.type").map(|kind| match span.error.as_deref() {
            None | Some("") => kind,
            Some(message) => format!("{kind}: {}", one_line(message)),
        }),
    ];
    parts.into_iter().flatten().map(|part| format!("  {part}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b21_a_trace_is_shown_as_a_tree() {
        let span = |id: &str, parent: Option<&str>, name: &str, second: u8, more: Value| {
            json!({"id": id, "parent": parent, "name": name, "began": format!("2026-11-24T12:00:0{second}Z"),
                "duration_ms": 1500, "attributes": more, "error": null})
        };
        let mut failed = span("4", Some("1"), "execute_tool a\u{1b}b", 3, json!({"error.type": "failed"}));
        failed["error"] = "no such\nfile".into();
        let trace = json!({"trace_id": "ab", "spans": [
            span("1", Some("9"), "invoke_agent toolrack", 0, json!({"gen_ai.response.finish_reasons": ["stop"]})),
            span("2", Some("1"), "chat m", 1, json!({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5})),
            failed,
            span("5", Some("4"), "execute_tool c", 4, json!({})),
            // In itself, which no server sends.
            span("6", Some("6"), "lost", 4, json!({})),
        ]});
        let lines = lines(&serde_json::from_value(trace).unwrap());
        assert_eq!(lines[0], "ab began 2026-11-24T12:00:00Z");
        assert!(
            lines[1].starts_with("      0 ms  invoke_agent toolrack ") && lines[1].ends_with("1500 ms  stop"),
            "{lines:?}"
        );
        assert!(
            lines[2].starts_with("   1000 ms    chat m ") && lines[2].ends_with("  10 tokens in, 5 out"),
            "{lines:?}"
        );
        assert!(!lines[3].contains('\u{1b}') && lines[3].contains("  failed: no such"), "{lines:?}");
        assert!(lines[4].starts_with("   4000 ms      execute_tool c"), "{lines:?}");
        assert_eq!(lines.len(), 5);
    }
}
