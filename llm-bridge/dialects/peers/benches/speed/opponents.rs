//! Toolrack and its peers, each in its best mode: the right parser named, and used again where it can be.

use std::{
    error::Error,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use dynamo_parsers::tool_calling::detect_and_parse_tool_call;
use dynamo_parsers_v2::{UnifiedParserEvent, UnifiedParserOutput, create_tool_parser_for_family};
use peers::{
    block_on, ours,
    peer::{PIECE, dynamo, dynamo_v2, smg},
    pieces,
};
use toolrack_dialects::{Event, Offered, ScanOptions, Scanner, dialect};

use crate::texts::{self, Form, Text};

/// What has come out.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) calls: usize,
    pub(crate) bytes: usize,
}

/// What may go wrong in a peer.
pub(crate) type Fault = Box<dyn Error>;

/// Reads the text once: how long that took, and what came out.
pub(crate) type Run = Box<dyn FnMut() -> Result<(Duration, Seen), Fault>>;

/// One row of the table.
pub(crate) struct Opponent {
    pub(crate) title: String,
    pub(crate) ours: bool,
    pub(crate) run: Run,
}

/// Everyone who reads this text, in pieces or whole. Toolrack comes first, without and then with deltas.
pub(crate) fn opponents(text: &Text, in_pieces: bool) -> Result<Vec<Opponent>, Fault> {
    let (json, xml) = (text.form != Form::Xml, text.form != Form::Json);
    let pinned = if json { "hermes" } else { "qwen3_coder" };
    let pinned = dialect(pinned).ok_or("there is no such dialect")?;
    let input: Arc<str> = text.text.as_str().into();
    let mut all = vec![
        toolrack("Toolrack", &input, in_pieces, ScanOptions::default()),
        toolrack("Toolrack, deltas", &input, in_pieces, ScanOptions::default().deltas(true)),
        toolrack("Toolrack, one dialect", &input, in_pieces, ScanOptions::default().only(pinned)),
    ];
    if json {
        all.push(dynamo("hermes", &input, in_pieces));
        all.push(tool_parser("qwen", &input, in_pieces)?);
    }
    if xml {
        all.push(dynamo("qwen3_coder", &input, in_pieces));
        all.push(dynamo_v2("qwen3_coder", &input, in_pieces));
        all.push(dynamo_v2_unified("qwen3", &input, in_pieces));
        all.push(tool_parser("qwen_xml", &input, in_pieces)?);
    }
    Ok(all)
}

fn timed(read: impl FnOnce() -> Result<Seen, Fault>) -> Result<(Duration, Seen), Fault> {
    let began = Instant::now();
    let seen = black_box(read()?);
    Ok((began.elapsed(), seen))
}

/// The pieces, or the one piece, that are fed.
fn cut(input: &str, in_pieces: bool) -> Vec<String> {
    let pieces = if in_pieces { pieces(input, PIECE) } else { vec![input] };
    pieces.into_iter().map(str::to_owned).collect()
}

fn toolrack(title: &str, input: &str, in_pieces: bool, options: ScanOptions) -> Opponent {
    let offered: Arc<Offered> = ours::offered(Some(&texts::tools()));
    let pieces = cut(input, in_pieces);
    let read = move || {
        timed(|| {
            let mut scanner = Scanner::new(Arc::clone(&offered), options.clone());
            let mut seen = Seen::default();
            let mut sink = |event: Event<'_>| match event {
                Event::Text(text) => seen.bytes += text.len(),
                Event::Call(call) => {
                    seen.calls += 1;
                    seen.bytes += black_box(call).arguments.len();
                }
                Event::CallDelta { arguments, .. } => {
                    black_box(arguments);
                }
                _ => {}
            };
            for piece in &pieces {
                scanner.push(piece, &mut sink);
            }
            scanner.finish(&mut sink);
            Ok(seen)
        })
    };
    Opponent { title: title.into(), ours: true, run: Box::new(read) }
}

fn peer(title: String, run: Run) -> Opponent {
    Opponent { title, ours: false, run }
}

fn dynamo(parser: &'static str, input: &Arc<str>, in_pieces: bool) -> Opponent {
    let tools = dynamo::tools(&texts::tools());
    let title = format!("dynamo-parsers, `{parser}`");
    if !in_pieces {
        let input = Arc::clone(input);
        let read = move || {
            timed(|| {
                let (calls, text) = block_on(detect_and_parse_tool_call(&input, Some(parser), Some(&tools)))?;
                let arguments: usize = calls.iter().map(|call| call.function.arguments.len()).sum();
                Ok(Seen { calls: calls.len(), bytes: arguments + text.map_or(0, |text| text.len()) })
            })
        };
        return peer(title, Box::new(read));
    }
    let chunks = dynamo::chunks(cut(input, true).iter().map(String::as_str));
    let read = move || {
        // What carries the pieces is made beforehand.
        let chunks = chunks.clone();
        timed(|| {
            let mut seen = Seen::default();
            dynamo::stream(parser, &tools, chunks, |chunk| {
                for choice in chunk.data.iter().flat_map(|data| &data.choices) {
                    for call in choice.delta.tool_calls.iter().flatten() {
                        seen.calls += usize::from(call.id.is_some());
                        let arguments =
                            call.function.as_ref().and_then(|function| function.arguments.as_ref());
                        seen.bytes += arguments.map_or(0, String::len);
                    }
                }
                black_box(chunk);
            });
            Ok(seen)
        })
    };
    peer(title, Box::new(read))
}

fn dynamo_v2(parser: &'static str, input: &str, in_pieces: bool) -> Opponent {
    let tools = dynamo_v2::tools(&texts::tools());
    let pieces = cut(input, in_pieces);
    let read = move || {
        timed(|| {
            // A parser reads one answer.
            let mut parser = create_tool_parser_for_family(parser, &tools)?;
            let mut seen = Seen::default();
            let mut note = |result: dynamo_parsers_v2::ToolParseResult| {
                seen.bytes += result.normal_text.len();
                for call in black_box(result).calls {
                    seen.calls += usize::from(call.complete);
                    seen.bytes += call.arguments.len();
                }
            };
            for piece in &pieces {
                note(parser.push(piece)?);
            }
            note(parser.finish()?);
            Ok(seen)
        })
    };
    peer(format!("dynamo-parsers-v2, `{parser}`"), Box::new(read))
}

fn dynamo_v2_unified(parser: &'static str, input: &str, in_pieces: bool) -> Opponent {
    let tools = dynamo_v2::tools(&texts::tools());
    let pieces = cut(input, in_pieces);
    let read = move || {
        timed(|| {
            let mut parser = dynamo_v2::unified(parser, &tools, false)?;
            let mut seen = Seen::default();
            let mut output = UnifiedParserOutput::default();
            let mut note = |output: &mut UnifiedParserOutput| {
                for event in black_box(&mut *output).events.drain(..) {
                    match event {
                        UnifiedParserEvent::Text(text) => seen.bytes += text.len(),
                        UnifiedParserEvent::ToolCall(call) => {
                            seen.calls += usize::from(call.complete);
                            seen.bytes += call.arguments.len();
                        }
                        _ => {}
                    }
                }
            };
            for piece in &pieces {
                parser.parse_into(piece, &mut output)?;
                note(&mut output);
            }
            note(&mut parser.finish()?);
            Ok(seen)
        })
    };
    peer(format!("dynamo-parsers-v2 (unified), `{parser}`"), Box::new(read))
}

fn tool_parser(name: &'static str, input: &Arc<str>, in_pieces: bool) -> Result<Opponent, Fault> {
    let tools = smg::tools(&texts::tools());
    let mut parser = smg::parser(name).ok_or("no such parser")?;
    let title = format!("tool-parser, `{name}`");
    if !in_pieces {
        let input = Arc::clone(input);
        let read = move || {
            timed(|| {
                let (text, calls) = block_on(parser.parse_complete_with_tools(&input, &tools))?;
                let arguments: usize = calls.iter().map(|call| call.function.arguments.len()).sum();
                Ok(Seen { calls: calls.len(), bytes: arguments + text.len() })
            })
        };
        return Ok(peer(title, Box::new(read)));
    }
    let pieces = cut(input, true);
    let read = move || {
        timed(|| {
            parser.reset();
            let mut seen = Seen::default();
            for piece in &pieces {
                let result = black_box(block_on(parser.parse_incremental(piece, &tools))?);
                seen.bytes += result.normal_text.len();
                for call in result.calls {
                    seen.calls += usize::from(call.name.is_some());
                    seen.bytes += call.parameters.len();
                }
            }
            for call in parser.get_unstreamed_tool_args().into_iter().flatten() {
                seen.bytes += call.parameters.len();
            }
            seen.bytes += parser.take_unstreamed_normal_text().len();
            Ok(seen)
        })
    };
    Ok(peer(title, Box::new(read)))
}
