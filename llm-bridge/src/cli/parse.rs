//! `toolrack parse`: what the scanner makes of a model's output.

use std::{
    io::{BufRead, Read},
    num::NonZeroUsize,
    process::ExitCode,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::out::print_line;
use crate::dialect::{self, Offered, OfferedTool, Parsed, Reading, ScanOptions, Scanner};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Read JSON lines {"input", "tools"?, "dialect"?, "thinking"?, "chunk"?, "reading"?}, and print one line for each
    #[arg(long)]
    jsonl: bool,
    /// Feed the text in pieces of N characters
    #[arg(long, value_name = "N")]
    chunk: Option<NonZeroUsize>,
    /// File with the tools that were offered: a JSON array of definitions. Without it any name counts as offered
    #[arg(long, value_name = "FILE")]
    tools: Option<std::path::PathBuf>,
    /// Read calls in this dialect only
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// The prompt has opened the model's thinking
    #[arg(long)]
    thinking: bool,
    /// Turn these other readings on, with commas between their names, such as `only_closed`
    #[arg(long, value_name = "NAMES")]
    reading: Option<Reading>,
}

/// A line of `--jsonl`.
#[derive(Debug, Deserialize)]
struct Case {
    input: String,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    dialect: Option<String>,
    #[serde(default)]
    thinking: Option<bool>,
    #[serde(default)]
    chunk: Option<NonZeroUsize>,
    #[serde(default)]
    reading: Option<Reading>,
}

/// What is printed for a line that cannot be read.
#[derive(Debug, Serialize)]
struct Fault {
    error: String,
}

#[derive(Debug, Serialize)]
struct Output<'p> {
    content: &'p str,
    reasoning: &'p str,
    calls: Vec<OutputCall<'p>>,
    dialect: Option<&'p str>,
}

#[derive(Debug, Serialize)]
struct OutputCall<'p> {
    name: &'p str,
    // As the model wrote it, but on one line: a line end in JSON stands between its tokens only.
    arguments: Box<RawValue>,
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let mut stdin = std::io::stdin().lock();
    let unreadable = |error: std::io::Error| format!("cannot read standard input: {error}");
    let tools = arguments.tools.as_deref().map(read_tools).transpose()?;
    let mut bytes = Vec::new();
    if !arguments.jsonl {
        stdin.read_to_end(&mut bytes).map_err(unreadable)?;
        let case = Case {
            input: String::from_utf8_lossy(&bytes).into_owned(),
            tools,
            dialect: arguments.dialect,
            thinking: Some(arguments.thinking),
            chunk: arguments.chunk,
            reading: arguments.reading,
        };
        print_line(output(&case)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut code = ExitCode::SUCCESS;
    for number in 1_u64.. {
        bytes.clear();
        if stdin.read_until(b'\n', &mut bytes).map_err(unreadable)? == 0 {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let read =
            serde_json::from_slice(&bytes).map_err(|error| error.to_string()).and_then(|case: Case| {
                output(&Case {
                    tools: case.tools.or_else(|| tools.clone()),
                    dialect: case.dialect.or_else(|| arguments.dialect.clone()),
                    chunk: case.chunk.or(arguments.chunk),
                    reading: case.reading.or(arguments.reading),
                    thinking: Some(arguments.thinking || case.thinking.unwrap_or_default()),
                    input: case.input,
                })
            });
        let line = match read {
            Ok(line) => line,
            Err(error) => {
                code = ExitCode::FAILURE;
                json(&Fault { error: format!("line {number}: {error}") })?
            }
        };
        if !print_line(line)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    Ok(code)
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

fn read_tools(file: &std::path::Path) -> Result<Vec<Value>, String> {
    let place = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {place}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{place} is not a JSON array of tools: {error}"))
}

fn output(case: &Case) -> Result<String, String> {
    let parsed = read(case)?;
    let calls: Result<Vec<_>, _> = parsed
        .calls
        .iter()
        .map(|call| {
            Ok(OutputCall {
                name: &call.name,
                arguments: RawValue::from_string(call.arguments.replace(['\n', '\r'], " "))?,
            })
        })
        .collect();
    let calls =
        calls.map_err(|error: serde_json::Error| format!("a call's arguments are not JSON: {error}"))?;
    let output =
        Output { content: &parsed.content, reasoning: &parsed.reasoning, calls, dialect: parsed.dialect };
    json(&output)
}

fn read(case: &Case) -> Result<Parsed, String> {
    let only = match &case.dialect {
        None => None,
        Some(name) => Some(dialect::dialect(name).ok_or_else(|| {
            let known: Vec<&str> = dialect::dialects().map(|row| row.name).collect();
            format!("there is no dialect `{name}`; the dialects are {}", known.join(", "))
        })?),
    };
    let options = ScanOptions {
        thinking: case.thinking.unwrap_or_default(),
        only: only.map(|row| row.name),
        reading: case.reading.unwrap_or_default(),
        ..ScanOptions::default()
    };
    let offered = Arc::new(case.tools.as_deref().map_or_else(Offered::any, offered));
    let mut parsed = Parsed::default();
    let mut scanner = Scanner::new(offered, options);
    let mut sink = |event: dialect::Event<'_>| parsed.take(event);
    match case.chunk {
        None => scanner.push(&case.input, &mut sink),
        Some(size) => pieces(&case.input, size.get()).for_each(|piece| scanner.push(piece, &mut sink)),
    }
    scanner.finish(&mut sink);
    Ok(parsed)
}

/// The tools of OpenAI definitions; both the wrapped form and the bare one are in use.
fn offered(tools: &[Value]) -> Offered {
    Offered::new(tools.iter().filter_map(|tool| {
        let function = tool.get("function").unwrap_or(tool);
        let schema = function.get("parameters").or_else(|| function.get("input_schema"));
        Some(OfferedTool {
            name: function.get("name")?.as_str()?.to_owned(),
            schema: schema.cloned().map(Arc::new),
            tag: None,
        })
    }))
}

/// A text in pieces of so many characters.
fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}
