//! `cargo xtask add CRATE`.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use serde_json::Value;

use crate::{Result, toolrack};

const USAGE: &str = "usage: cargo xtask add CRATE[@VERSION] | FOLDER | --git URL [OPTIONS OF `cargo add`]";

/// Adds a crate of tools to `tools/Cargo.toml`, and says which tools came with it.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let Some(first) = arguments.first() else { return Err(USAGE.to_owned()) };
    let before = dependencies(root)?;
    let mut add = toolrack::cargo();
    add.arg("add").arg("--manifest-path").arg(root.join("Cargo.toml")).args(["--package", "tools"]);
    if Path::new(first).join("Cargo.toml").is_file() {
        add.arg("--path");
    }
    if !run_to_end(add.args(arguments))? {
        return Ok(ExitCode::FAILURE);
    }
    let after = dependencies(root)?;
    let Some(added) = after.difference(&before).next() else {
        println!("tools/Cargo.toml has it already; `cargo xtask list-tools` lists the tools");
        return Ok(ExitCode::SUCCESS);
    };
    let module = module_of(added);
    let output = toolrack::program().args(["tools", "list", "--json"]).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "with {added} the program does not start; `cargo remove --package tools {added}` takes it out"
        ));
    }
    let listed: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("the list of tools: {error}"))?;
    let tools = tools_of(&listed, &module);
    if tools.is_empty() {
        return Err(format!(
            "{added} brought no tools: a crate of tools has `links = \"{added}\"` in its manifest and `toolrack_build::tools(\"src\")` in \
             its build script, as `cargo xtask new-crate` writes them. `cargo remove --package tools {added}` takes it out"
        ));
    }
    println!(
        "Added {added} to tools/Cargo.toml, with {}:",
        if tools.len() == 1 { "one tool" } else { "these tools" }
    );
    for (name, why_off) in tools {
        println!("  {name}{}", why_off.map(|why| format!("   off: {why}")).unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of what `tools` depends on.
fn dependencies(root: &Path) -> Result<BTreeSet<String>> {
    let mut metadata = toolrack::cargo();
    metadata
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(root.join("Cargo.toml"));
    let output =
        metadata.stderr(Stdio::inherit()).output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the metadata of the workspace: {error}"))?;
    let packages = metadata.get("packages").and_then(serde_json::Value::as_array).into_iter().flatten();
    let tools = packages.filter(|package| package["name"] == "tools");
    let names = tools.flat_map(|package| package["dependencies"].as_array().into_iter().flatten());
    Ok(names.filter_map(|dependency| dependency["name"].as_str().map(str::to_owned)).collect())
}

/// The module of a crate's tools, as `discover!` names it.
pub(crate) fn module_of(package: &str) -> String {
    let name = package.replace('-', "_").to_ascii_lowercase();
    let short = ["toolrack_", "tools_"].iter().find_map(|start| name.strip_prefix(start));
    short
        .filter(|short| short.starts_with(|first: char| first.is_ascii_lowercase()))
        .unwrap_or(&name)
        .to_owned()
}

/// The listed tools of a module, each with the reason if it is off.
fn tools_of(listed: &Value, module: &str) -> Vec<(String, Option<String>)> {
    let all = listed.as_array().or_else(|| listed["tools"].as_array()).into_iter().flatten();
    all.filter_map(|tool| {
        let name = tool["name"].as_str()?;
        let within = name.strip_prefix(module)?.starts_with('.');
        within.then(|| (name.to_owned(), tool["reason"].as_str().map(str::to_owned)))
    })
    .collect()
}

fn run_to_end(command: &mut Command) -> Result<bool> {
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn p1_the_tools_of_a_crate_are_those_of_its_module() {
        assert_eq!(
            (module_of("toolrack-desk").as_str(), module_of("csv-tools").as_str()),
            ("desk", "csv_tools")
        );
        let listed = json!([
            {"name": "desk.contrast"},
            {"name": "desk.convert_unit", "reason": "needs Units"},
            {"name": "desktop"},
            {"name": "calculate"},
        ]);
        assert_eq!(
            tools_of(&listed, "desk"),
            [("desk.contrast".into(), None), ("desk.convert_unit".into(), Some("needs Units".into()))]
        );
    }
}
