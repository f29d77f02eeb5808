//! The cases: files of JSON lines.

use std::{fs, path::Path};

use serde_json::{from_str, value::RawValue};

use super::{Members, told};
use crate::Result;

/// One line of a file of cases.
#[derive(Debug)]
pub(super) struct Case {
    /// The name of the file, without its ending.
    pub(super) suite: String,
    pub(super) id: String,
    pub(super) dialect: String,
    pub(super) input: String,
    /// The tools that are offered, as JSON: a list, or null where any name is one.
    pub(super) tools: String,
    pub(super) thinking: bool,
    /// Its expectation is stated in full, and nobody reads it otherwise.
    pub(super) scored: bool,
    pub(super) expect: Expected,
    /// What others read in a disputed case; it may be any of these as well.
    pub(super) also: Vec<Expected>,
}

#[derive(Debug)]
pub(super) struct Expected {
    /// As it is written in the file.
    pub(super) source: String,
    pub(super) calls: Vec<Call>,
    /// Null where it does not matter.
    pub(super) content: Option<String>,
    pub(super) reasoning: Option<String>,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Box<RawValue>,
}

/// The cases of every `.jsonl` file of a folder, or of the folder `dialects` in it.
pub(super) fn read_folder(folder: &Path) -> Result<Vec<Case>> {
    let inner = folder.join("dialects");
    let folder = if inner.is_dir() { &inner } else { folder };
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    let (mut cases, mut faults) = (Vec::new(), Vec::new());
    for file in files {
        let suite = file.file_stem().unwrap_or_default().to_string_lossy();
        let text =
            fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            match read_case(&suite, line) {
                Ok(case) => cases.push(case),
                Err(fault) => faults.push(format!("{}:{number}: {fault}", file.display())),
            }
        }
    }
    if faults.is_empty() { Ok(cases) } else { Err(faults.join("\n")) }
}

fn read_case(suite: &str, line: &str) -> Result<Case> {
    let members: Members<'_> = from_str(line).map_err(told)?;
    let strength = string(&members, "strength")?;
    if !["asserted", "observed"].contains(&strength.as_str()) {
        return Err(format!("`strength` is `{strength}`; it is `asserted` or `observed`"));
    }
    let disputed = flag(&members, "disputed")?;
    let mut also = Vec::new();
    if disputed {
        let readings: Vec<&RawValue> = from_str(member(&members, "also")?.get()).map_err(told)?;
        for reading in readings {
            also.push(expected(reading).map_err(|fault| format!("`also`: {fault}"))?);
        }
    }
    let tools = member(&members, "tools")?.get();
    let list: Option<Vec<&RawValue>> = from_str(tools).map_err(|error| format!("`tools`: {error}"))?;
    if list.is_some_and(|tools| tools.iter().any(|tool| !tool.get().starts_with('{'))) {
        return Err("`tools` is not a list of definitions".into());
    }
    Ok(Case {
        suite: suite.to_owned(),
        id: string(&members, "id")?,
        dialect: string(&members, "dialect")?,
        input: string(&members, "input")?,
        tools: tools.to_owned(),
        thinking: flag(&members, "thinking")?,
        scored: strength == "asserted" && !disputed,
        expect: expected(member(&members, "expect")?)?,
        also,
    })
}

fn expected(source: &RawValue) -> Result<Expected> {
    let members: Members<'_> = from_str(source.get()).map_err(told)?;
    let calls: Vec<&RawValue> = from_str(member(&members, "calls")?.get()).map_err(told)?;
    let call = |call: &RawValue| {
        let members: Members<'_> = from_str(call.get()).map_err(told)?;
        // One peer gives a call without a name.
        let name: Option<String> = from_str(member(&members, "name")?.get()).map_err(told)?;
        Ok(Call { name: name.unwrap_or_default(), arguments: member(&members, "arguments")?.to_owned() })
    };
    // The readings of others leave out what they do not state.
    let text = |name| {
        let text = members.get(name).map_or(Ok(None), |text| from_str(text.get()));
        text.map_err(|error| format!("`{name}`: {error}"))
    };
    Ok(Expected {
        source: source.get().to_owned(),
        calls: calls.into_iter().map(call).collect::<Result<_>>()?,
        content: text("content")?,
        reasoning: text("reasoning")?,
    })
}

fn member<'t>(members: &Members<'t>, name: &str) -> Result<&'t RawValue> {
    members.get(name).copied().ok_or_else(|| format!("there is no `{name}`"))
}

fn string(members: &Members<'_>, name: &str) -> Result<String> {
    from_str(member(members, name)?.get()).map_err(|error| format!("`{name}`: {error}"))
}

fn flag(members: &Members<'_>, name: &str) -> Result<bool> {
    let flag: Option<bool> = members
        .get(name)
        .map_or(Ok(None), |flag| from_str(flag.get()))
        .map_err(|error| format!("`{name}`: {error}"))?;
    Ok(flag.unwrap_or_default())
}
