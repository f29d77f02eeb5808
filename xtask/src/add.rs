//! `cargo xtask add CRATE`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use serde_json::Value;

use crate::{Result, toolrack};

const USAGE: &str = "usage: cargo xtask add CRATE[@VERSION] | FOLDER | --git URL [OPTIONS OF `cargo add`]";
/// The crate by which a crate and this program know each other's tools.
const CORE: &str = "registry-core";

/// Adds a crate of tools to `tools/Cargo.toml`, and says which tools came with it. What is none leaves no line there.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    check(arguments)?;
    let (before, kept) = (Graph::read(root)?.lines, Files::read(root)?);
    let mut add = toolrack::cargo();
    add.arg("add").arg("--manifest-path").arg(root.join("Cargo.toml")).args(["--package", "tools"]);
    if arguments.first().is_some_and(|first| is_crate(first)) {
        add.arg("--path");
    }
    let status = add.args(arguments).status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(
            "nothing was added. A crate of crates.io is named, a folder given by its path, and a repository by --git URL".to_owned()
        );
    }
    let added = Graph::read(root).and_then(|graph| graph.added(&before));
    let added = match added {
        Ok(Some(added)) => added,
        Ok(None) => {
            println!("tools/Cargo.toml has it already; `cargo xtask list-tools` lists the tools");
            return Ok(ExitCode::SUCCESS);
        }
        Err(why) => {
            kept.put_back()?;
            return Err(format!("nothing was added: {why}"));
        }
    };
    let list = toolrack::program().args(["tools", "list", "--json"]).stderr(Stdio::inherit()).output();
    let list = list.map_err(|error| format!("cannot run cargo: {error}"))?;
    if !list.status.success() {
        return Err(format!(
            "with {added} the program does not start; `cargo remove --package tools {added}` takes it out"
        ));
    }
    let listed: Value =
        serde_json::from_slice(&list.stdout).map_err(|error| format!("the list of tools: {error}"))?;
    let tools = tools_of(&listed, &module_of(&added));
    if tools.is_empty() {
        kept.put_back()?;
        return Err(format!("nothing was added: {}", no_tools(&added)));
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

/// What can be said before Cargo is asked.
fn check(arguments: &[String]) -> Result {
    let first = arguments.first().ok_or(USAGE)?;
    if arguments.iter().any(|argument| argument == "--rename" || argument.starts_with("--rename=")) {
        return Err(
            "a crate of tools keeps its name, by which its tools are found: leave out --rename".to_owned()
        );
    }
    let is_path = first.starts_with('.') || first.contains(['/', '\\']);
    if is_path && !is_crate(first) {
        return Err(format!(
            "there is no crate in {first}: it has no Cargo.toml. A repository is given by --git URL; `cargo xtask new-crate` writes a crate of tools"
        ));
    }
    Ok(())
}

fn is_crate(folder: &str) -> bool {
    Path::new(folder).join("Cargo.toml").is_file()
}

fn no_tools(name: &str) -> String {
    format!(
        "{name} has no tools: a crate of tools has `links = \"{name}\"` in its manifest, `toolrack_build::tools(\"src\")` in its build script \
         and `registry_core::discover!();` in its library, as `cargo xtask new-crate` writes them"
    )
}

/// The files that `cargo add` changes.
struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    fn read(root: &Path) -> Result<Self> {
        let files = ["tools/Cargo.toml", "Cargo.lock"].map(|name| root.join(name));
        let read = |file: PathBuf| match fs::read(&file) {
            Ok(text) => Ok((file, text)),
            Err(error) => Err(format!("cannot read {}: {error}", file.display())),
        };
        Ok(Self(files.into_iter().map(read).collect::<Result<_>>()?))
    }

    fn put_back(&self) -> Result {
        for (file, text) in &self.0 {
            fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        Ok(())
    }
}

/// What Cargo knows of the workspace and all that it depends on.
struct Graph {
    /// What `tools` depends on: each name with its line.
    lines: BTreeMap<String, Value>,
    packages: Vec<Value>,
}

impl Graph {
    fn read(root: &Path) -> Result<Self> {
        let mut metadata = toolrack::cargo();
        metadata.args(["metadata", "--format-version=1", "--manifest-path"]).arg(root.join("Cargo.toml"));
        let output = output_of(metadata)?;
        let mut metadata: Value = serde_json::from_slice(&output)
            .map_err(|error| format!("the metadata of the workspace: {error}"))?;
        let Some(Value::Array(packages)) = metadata.get_mut("packages").map(Value::take) else {
            return Err("the metadata of the workspace has no packages".to_owned());
        };
        Ok(Self::of(packages))
    }

    fn of(packages: Vec<Value>) -> Self {
        let tools =
            packages.iter().filter(|package| package["name"] == "tools" && package["source"].is_null());
        let lines = tools.flat_map(|package| package["dependencies"].as_array().into_iter().flatten());
        let named = |line: &Value| Some((line["name"].as_str()?.to_owned(), line.clone()));
        Self { lines: lines.filter_map(named).collect(), packages }
    }

    /// The crate of tools whose line is new or another one; an error where it is none.
    fn added(&self, before: &BTreeMap<String, Value>) -> Result<Option<String>> {
        let new = self.lines.iter().find(|(name, line)| before.get(*name) != Some(*line));
        let Some((name, _)) = new else { return Ok(None) };
        let package = self.packages.iter().rfind(|package| package["name"] == **name);
        if package.is_none_or(|package| package["links"].is_null()) {
            return Err(no_tools(name));
        }
        let sources = self.packages.iter().filter(|package| package["name"] == CORE);
        let others: BTreeSet<_> = sources.filter_map(|package| package["source"].as_str()).collect();
        match others.first() {
            Some(source) => Err(other_core(name, source)),
            None => Ok(Some(name.clone())),
        }
    }
}

/// A crate that was made with another `registry-core` than this program registers its tools there.
fn other_core(name: &str, source: &str) -> String {
    let (kind, rest) = source.split_once('+').unwrap_or(("registry", source));
    let place = match kind {
        "git" => format!("\"{}\"", rest.split(['?', '#']).next().unwrap_or(rest)),
        _ => "crates-io".to_owned(),
    };
    format!(
        "{name} uses another {CORE} than this project ({rest}), so that its tools would not be found. Have it use this one: add these lines to \
         Cargo.toml, and then add {name} again\n\n    [patch.{place}]\n    {CORE} = {{ path = \"{CORE}\" }}"
    )
}

/// What a program prints. Its errors are shown.
fn output_of(mut command: Command) -> Result<Vec<u8>> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err("Cargo cannot resolve the workspace".to_owned())
    }
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

    #[test]
    fn p1_what_is_no_crate_of_tools_is_told_before_it_is_built() {
        let graph = |name: &str, version: &str, links: Value, core: Value| {
            let tools =
                json!({"name": "tools", "source": null, "dependencies": [{"name": name, "req": version}]});
            let package = json!({"name": name, "links": links});
            let (ours, theirs) =
                (json!({"name": CORE, "source": null}), json!({"name": CORE, "source": core}));
            Graph::of(vec![tools, package, ours, theirs])
        };
        let before = graph("desk", "^1", json!("desk"), Value::Null);
        assert_eq!(before.added(&before.lines), Ok(None));
        let newer = graph("desk", "^2", json!("desk"), Value::Null);
        assert_eq!(newer.added(&before.lines), Ok(Some("desk".to_owned())));
        let none = graph("semver", "^1", Value::Null, Value::Null).added(&before.lines).unwrap_err();
        assert!(none.starts_with("semver has no tools: a crate of tools has `links"), "{none}");
        for (source, place) in [
            ("registry+https://github.com/rust-lang/crates.io-index", "[patch.crates-io]"),
            ("git+https://example.org/rack?branch=main#abc", "[patch.\"https://example.org/rack\"]"),
        ] {
            let other = graph("units", "^1", json!("units"), json!(source)).added(&before.lines).unwrap_err();
            assert!(other.contains(place) && other.contains("registry-core = { path"), "{other}");
        }
    }

    #[test]
    fn p1_arguments_that_cargo_would_misread_are_told() {
        let told = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            check(&arguments).unwrap_err()
        };
        assert!(told(&[]).starts_with("usage: "));
        assert!(told(&["../nowhere"]).starts_with("there is no crate in ../nowhere: it has no Cargo.toml"));
        assert!(told(&["desk", "--rename", "d"]).contains("leave out --rename"));
    }
}
