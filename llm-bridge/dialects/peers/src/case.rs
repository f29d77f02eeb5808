//! The cases: those of this folder, and those of the corpus where it is at hand.

use std::{error::Error, fs, path::Path};

use serde_json::Value;

use crate::call::Called;

/// What a model wrote, what it was offered, and what it should mean.
#[derive(Debug, Clone)]
pub struct Case {
    /// Where it comes from.
    pub id: String,
    /// The dialect it is written in.
    pub dialect: String,
    /// The model's whole output.
    pub input: String,
    /// The tools offered; none where any name counts as offered.
    pub tools: Option<Vec<Tool>>,
    /// The prompt had opened the thinking.
    pub thinking: bool,
    /// The calls that are expected.
    pub expected: Vec<Called>,
    /// The test it comes from states the expectation in full.
    pub asserted: bool,
    /// Other tests read the same input in another way.
    pub disputed: bool,
    /// Those other readings: where from, and the calls.
    pub also: Vec<(String, Vec<Called>)>,
    /// One of this folder.
    pub own: bool,
}

/// A tool as it is offered.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The JSON schema of its arguments.
    pub parameters: Option<Value>,
}

impl Case {
    /// No tools were offered.
    pub fn nothing_offered(&self) -> bool {
        self.tools.as_ref().is_some_and(Vec::is_empty)
    }

    /// The tools, or, where none are named, one without a schema for each name that is expected: some peers drop
    /// every call to a tool that was not offered.
    pub fn tools_or_expected(&self) -> Vec<Tool> {
        if let Some(tools) = &self.tools {
            return tools.clone();
        }
        let mut names: Vec<&str> = Vec::new();
        let others = self.also.iter().flat_map(|(_, calls)| calls);
        for call in self.expected.iter().chain(others) {
            if !names.contains(&call.name.as_str()) {
                names.push(&call.name);
            }
        }
        names.into_iter().map(|name| Tool { name: name.into(), parameters: None }).collect()
    }

    fn read(line: &str, own: bool) -> Result<Self, Box<dyn Error>> {
        let line: Value = serde_json::from_str(line)?;
        let text = |key: &str| {
            let found = line.get(key).and_then(Value::as_str);
            found.map(str::to_owned).ok_or_else(|| format!("a case without \"{key}\": {line}"))
        };
        let flag = |key: &str| line.get(key).is_some_and(|value| *value == Value::Bool(true));
        let tools = line.get("tools").and_then(Value::as_array);
        let also = line.get("also").and_then(Value::as_array);
        let reading = |reading: &Value| {
            let id = reading.get("id").and_then(Value::as_str).unwrap_or_default();
            (id.to_owned(), calls(reading))
        };
        Ok(Self {
            id: text("id")?,
            dialect: text("dialect")?,
            input: text("input")?,
            tools: tools.map(|tools| tools.iter().filter_map(tool).collect()),
            thinking: flag("thinking"),
            expected: line.get("expect").map(calls).unwrap_or_default(),
            asserted: own || line.get("strength").and_then(Value::as_str) == Some("asserted"),
            disputed: flag("disputed"),
            also: also.map(|also| also.iter().map(reading).collect()).unwrap_or_default(),
            own,
        })
    }
}

fn tool(definition: &Value) -> Option<Tool> {
    let function = definition.get("function")?;
    let name = function.get("name")?.as_str()?.to_owned();
    Some(Tool { name, parameters: function.get("parameters").filter(|schema| !schema.is_null()).cloned() })
}

fn calls(reading: &Value) -> Vec<Called> {
    let calls = reading.get("calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    calls
        .iter()
        .map(|call| Called {
            name: call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            arguments: call.get("arguments").cloned().unwrap_or_default(),
        })
        .collect()
}

/// The cases of this folder.
///
/// # Errors
/// A line that is no case.
pub fn own() -> Result<Vec<Case>, Box<dyn Error>> {
    include_str!("../cases.jsonl").lines().map(|line| Case::read(line, true)).collect()
}

/// The cases of every file of a folder, or none where there is no such folder.
///
/// # Errors
/// A file that cannot be read, or a line that is no case.
pub fn corpus(folder: &Path) -> Result<Option<Vec<Case>>, Box<dyn Error>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut files =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        for line in fs::read_to_string(file)?.lines() {
            cases.push(Case::read(line, false)?);
        }
    }
    Ok(Some(cases))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cases_are_whole() {
        let cases = own().unwrap();
        assert!(cases.iter().all(|case| case.own && case.asserted && !case.input.is_empty()));
        assert!(cases.iter().any(Case::nothing_offered) && cases.iter().any(|case| case.tools.is_none()));
        let mut ids: Vec<_> = cases.iter().map(|case| &case.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), cases.len());
    }

    #[test]
    fn a_corpus_that_is_not_there_is_none() {
        assert!(corpus(Path::new("no such folder")).unwrap().is_none());
    }
}
