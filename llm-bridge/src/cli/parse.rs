//! `toolrack parse`: parse tool calls from a model's output.

use std::{
    io::{BufRead, Read},
    num::NonZeroUsize,
    process::ExitCode,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::out::print_line;
use toolrack_dialects::{self as dialect, Offered, OfferedTool, ParseOptions, Parsed, ScanOptions, Scanner};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Read JSON lines {"input", "tools"?, "dialect"?, "thinking"?, "chunk"?, "parsing"?}, and print one line for each.
    /// "chunk" is the size of the pieces in characters, or a list of sizes, of which the last repeats
    #[arg(long)]
    jsonl: bool,
    /// Feed the text in pieces of N characters
    #[arg(long, value_name = "N")]
    chunk: Option<NonZeroUsize>,
    /// File with the offered tools, a JSON array of definitions [default: any name counts as offered]
    #[arg(long, value_name = "FILE")]
    tools: Option<std::path::PathBuf>,
    /// Parse calls in this dialect only
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// The prompt ends with open thinking
    #[arg(long)]
    thinking: bool,
    /// Parsing options to turn on, separated by commas, such as `only_closed`
    #[arg(long, value_name = "NAMES")]
    parsing: Option<ParseOptions>,
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
    chunk: Option<Chunk>,
    #[serde(default)]
    parsing: Option<ParseOptions>,
}

/// The sizes of the pieces, in characters.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "`chunk` is not a number above 0, or a list of them")]
enum Chunk {
    All(NonZeroUsize),
    /// Of the first piece, the second, and so on; the last is that of all that follow.
    Each(Vec<NonZeroUsize>),
}

/// The output for an invalid line.
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
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    aborted: &'p [Aborted],
}

#[derive(Debug, Serialize)]
struct OutputCall<'p> {
    name: &'p str,
    // As the model wrote it, but on one line: a line end in JSON stands between its tokens only.
    arguments: Box<RawValue>,
    dialect: &'p str,
    source: &'p str,
    repaired: bool,
    /// Its end was written.
    closed: bool,
    // The characters of the content that come before the call.
    offset: usize,
}

/// Text that began like a call and is none.
#[derive(Debug, Serialize)]
struct Aborted {
    source: String,
    reason: String,
}

/// The result of parsing a text.
#[derive(Debug, Default)]
struct Scan {
    parsed: Parsed,
    /// For each call, the bytes of the content that come before it.
    places: Vec<usize>,
    aborted: Vec<Aborted>,
}

impl Scan {
    fn take(&mut self, event: dialect::Event<'_>) {
        match &event {
            dialect::Event::Call(_) => self.places.push(self.parsed.content.len()),
            dialect::Event::Aborted { source, reason, .. } => {
                self.aborted.push(Aborted { source: (*source).to_owned(), reason: reason.to_string() });
            }
            _ => {}
        }
        self.parsed.take(event);
    }

    /// For each call, the characters of the content that come before it.
    fn offsets(&self) -> impl Iterator<Item = usize> {
        let (mut bytes, mut characters) = (0, 0);
        self.places.iter().map(move |place| {
            characters += self.parsed.content.get(bytes..*place).map_or(0, |text| text.chars().count());
            bytes = *place;
            characters
        })
    }
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
            chunk: arguments.chunk.map(Chunk::All),
            parsing: arguments.parsing,
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
                    chunk: case.chunk.or(arguments.chunk.map(Chunk::All)),
                    parsing: case.parsing.or(arguments.parsing),
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
    let scan = read(case)?;
    let parsed = &scan.parsed;
    let calls: Result<Vec<_>, _> = parsed.calls.iter().zip(scan.offsets()).map(output_call).collect();
    json(&Output {
        content: &parsed.content,
        reasoning: &parsed.reasoning,
        calls: calls.map_err(|error| format!("a call's arguments are not JSON: {error}"))?,
        dialect: parsed.dialect,
        aborted: &scan.aborted,
    })
}

fn output_call((call, offset): (&dialect::Call, usize)) -> Result<OutputCall<'_>, serde_json::Error> {
    Ok(OutputCall {
        name: &call.name,
        arguments: RawValue::from_string(call.arguments.replace(['\n', '\r'], " "))?,
        dialect: call.dialect,
        source: &call.source,
        repaired: call.repaired,
        closed: call.closed,
        offset,
    })
}

fn read(case: &Case) -> Result<Scan, String> {
    let sizes = match &case.chunk {
        None => &[][..],
        Some(Chunk::All(size)) => std::slice::from_ref(size),
        Some(Chunk::Each(sizes)) if sizes.is_empty() => return Err("`chunk` is an empty list".into()),
        Some(Chunk::Each(sizes)) => sizes,
    };
    let only = match &case.dialect {
        None => None,
        Some(name) => Some(dialect::dialect(name).ok_or_else(|| {
            let known: Vec<&str> = dialect::dialects().map(|row| row.name).collect();
            format!("there is no dialect `{name}`; the dialects are {}", known.join(", "))
        })?),
    };
    let options = ScanOptions::default()
        .thinking(case.thinking.unwrap_or_default())
        .parsing(case.parsing.unwrap_or_default());
    let options = only.into_iter().fold(options, ScanOptions::only);
    let offered = Arc::new(case.tools.as_deref().map_or_else(Offered::any, offered));
    let mut scan = Scan::default();
    let mut scanner = Scanner::new(offered, options);
    let mut sink = |event: dialect::Event<'_>| scan.take(event);
    pieces(&case.input, sizes).for_each(|piece| scanner.push(piece, &mut sink));
    scanner.finish(&mut sink);
    Ok(scan)
}

/// The tools of OpenAI definitions; both the wrapped form and the bare one are in use.
fn offered(tools: &[Value]) -> Offered {
    Offered::new(tools.iter().filter_map(|tool| {
        let function = tool.get("function").unwrap_or(tool);
        let schema = function.get("parameters").or_else(|| function.get("input_schema"));
        let mut tool = OfferedTool::new(function.get("name")?.as_str()?);
        tool.schema = schema.cloned().map(Arc::new);
        Some(tool)
    }))
}

/// A text in pieces of so many characters, of which the last repeats; all of it where there are none.
fn pieces<'t>(text: &'t str, sizes: &[NonZeroUsize]) -> impl Iterator<Item = &'t str> {
    let mut rest = text;
    let mut sizes = sizes.iter().map(|size| size.get());
    let mut size = usize::MAX;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        size = sizes.next().unwrap_or(size);
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(case: Value) -> Result<Value, String> {
        let case: Case = serde_json::from_value(case).map_err(|error| error.to_string())?;
        let line = output(&case)?;
        assert!(!line.contains('\n'), "{line}");
        Ok(serde_json::from_str(&line).unwrap())
    }

    #[test]
    fn pieces_are_as_long_as_asked_for() {
        let sizes: Vec<_> = [2, 1, 3].map(|size| NonZeroUsize::new(size).unwrap()).into();
        assert_eq!(pieces("aäbcdefgh", &sizes).collect::<Vec<_>>(), ["aä", "b", "cde", "fgh"]);
        assert_eq!(pieces("aäbc", &sizes[..1]).collect::<Vec<_>>(), ["aä", "bc"]);
        assert_eq!(pieces("aäbc", &[]).collect::<Vec<_>>(), ["aäbc"]);
        assert_eq!(pieces("", &sizes).count(), 0);
    }

    #[test]
    fn chunk_is_a_number_or_a_list() {
        for chunk in [json!(null), json!(2), json!([1]), json!([5, 1, 2])] {
            assert_eq!(line(json!({"input": "text", "chunk": chunk})).unwrap()["content"], "text", "{chunk}");
        }
        for chunk in [json!(0), json!([1, 0]), json!("2"), json!([]), json!(-1)] {
            let error = line(json!({"input": "text", "chunk": chunk})).unwrap_err();
            assert!(error.contains("`chunk` is"), "{chunk}: {error}");
        }
    }

    #[test]
    fn a_call_is_printed_with_its_source_and_its_place() {
        let source = "<tool_call>{\"name\": \"f\",\n\"arguments\": {\"a\":\r\n1,}}</tool_call>";
        for chunk in [json!(null), json!(1)] {
            let line = line(json!({"input": format!("é\n{source}, {source}."), "chunk": chunk})).unwrap();
            let call = |offset| {
                json!({"name": "f", "arguments": {"a": 1}, "dialect": "hermes", "source": source,
                    "repaired": true, "closed": true, "offset": offset})
            };
            assert_eq!(
                line,
                json!({"content": "é\n, .", "reasoning": "", "calls": [call(2), call(4)], "dialect": "hermes"})
            );
        }
    }

    #[test]
    fn what_had_begun_as_a_call_is_printed() {
        let text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"";
        let line = line(json!({"input": text})).unwrap();
        assert_eq!(line["content"], text);
        assert_eq!(line["aborted"], json!([{"source": text, "reason": "the text ended inside it"}]));
    }
}
