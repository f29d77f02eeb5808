//! What `toolrack parse` makes of the cases.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    thread,
};

use serde_json::{from_str, value::RawValue};

use super::{
    Members,
    case::{Call, Case},
    pieces::cuttings,
    told,
};
use crate::{Result, toolrack};

/// A case as it was read.
#[derive(Debug)]
pub(super) struct Reading {
    /// The line the program printed.
    pub(super) source: String,
    pub(super) content: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Call>,
    /// For each call, the characters of the content that come before it.
    pub(super) offsets: Vec<usize>,
    /// The cuttings that give another line, with that line.
    pub(super) differing: Vec<(&'static str, String)>,
}

/// Reads every case in every cutting.
pub(super) fn read(cases: &[Case]) -> Result<Vec<Reading>> {
    let mut program = toolrack::program()
        .args(["parse", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    let (Some(mut stdin), Some(stdout)) = (program.stdin.take(), program.stdout.take()) else {
        return Err("`toolrack parse` has no pipes".into());
    };
    let readings: Result<_> = thread::scope(|scope| {
        // A program that ends early does not read; that its lines end tells of it.
        scope.spawn(move || requests(cases).try_for_each(|line| stdin.write_all(line.as_bytes())));
        let mut lines = BufReader::new(stdout).lines();
        cases.iter().map(|case| read_case(case, &mut lines)).collect()
    });
    let status = program.wait().map_err(|error| format!("`toolrack parse` cannot be waited for: {error}"))?;
    if status.success() || readings.is_err() { readings } else { Err(format!("`toolrack parse`: {status}")) }
}

fn requests(cases: &[Case]) -> impl Iterator<Item = String> {
    cases.iter().flat_map(|case| {
        let input = serde_json::Value::from(case.input.as_str());
        cuttings(&case.id, &case.input).map(|cutting| {
            let (tools, thinking, sizes) = (&case.tools, case.thinking, cutting.sizes);
            format!("{{\"input\":{input},\"tools\":{tools},\"thinking\":{thinking},\"chunk\":{sizes}}}\n")
        })
    })
}

fn read_case(case: &Case, lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Result<Reading> {
    let mut next = || match lines.next() {
        Some(Ok(line)) => Ok(line),
        Some(Err(error)) => Err(format!("cannot read from `toolrack parse`: {error}")),
        None => Err(format!("`toolrack parse` ended at {}", case.id)),
    };
    let mut cuttings = cuttings(&case.id, &case.input).into_iter();
    cuttings.next();
    let source = next()?;
    let mut differing = Vec::new();
    for cutting in cuttings {
        let line = next()?;
        if line != source {
            differing.push((cutting.name, line));
        }
    }
    reading(source, differing)
        .map_err(|error| format!("{}: cannot read what `toolrack parse` says: {error}", case.id))
}

fn reading(source: String, differing: Vec<(&'static str, String)>) -> Result<Reading> {
    let members: Members<'_> = from_str(&source).map_err(told)?;
    if let Some(fault) = members.get("error") {
        return Err(fault.get().to_owned());
    }
    let member = |members: &Members<'_>, name| {
        members.get(name).map(|value| value.get().to_owned()).ok_or_else(|| format!("there is no `{name}`"))
    };
    let (mut calls, mut offsets) = (Vec::new(), Vec::new());
    let list: Vec<Box<RawValue>> = from_str(&member(&members, "calls")?).map_err(told)?;
    for call in list {
        let call: Members<'_> = from_str(call.get()).map_err(told)?;
        let arguments = RawValue::from_string(member(&call, "arguments")?);
        calls.push(Call {
            name: from_str(&member(&call, "name")?).map_err(told)?,
            arguments: arguments.map_err(|error| error.to_string())?,
        });
        offsets.push(from_str(&member(&call, "offset")?).map_err(told)?);
    }
    let content = from_str(&member(&members, "content")?).map_err(told)?;
    let reasoning = from_str(&member(&members, "reasoning")?).map_err(told)?;
    Ok(Reading { source, content, reasoning, calls, offsets, differing })
}
