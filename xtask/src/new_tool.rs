//! `cargo xtask new-tool [MODULE/…]NAME`.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    path::Path,
    process::ExitCode,
};

use crate::Result;

const USAGE: &str =
    "usage: cargo xtask new-tool [MODULE/…]NAME, such as `weather`, `travel/weather` or `travel/sea/weather`";

/// Folders that `discover!` leaves to Cargo.
const CARGO_FOLDERS: [&str; 5] = ["target", "src", "tests", "examples", "benches"];

/// Folders in folders, as far as `discover!` looks.
const MAX_FOLDERS: usize = 8;

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let [path] = arguments else { return Err(USAGE.to_owned()) };
    let (folders, name) = match path.rsplit_once('/') {
        Some((folders, name)) => (folders.split('/').collect(), name),
        None => (Vec::new(), path.as_str()),
    };
    for part in folders.iter().chain([&name]) {
        check_name(part)?;
    }
    if folders.len() > MAX_FOLDERS {
        return Err(format!("`{path}` is too deep for tools: {MAX_FOLDERS} folders at most. {USAGE}"));
    }
    if let Some(module) = folders.first().filter(|module| CARGO_FOLDERS.contains(module)) {
        return Err(format!(
            "`{module}` cannot be a module: Cargo gives a folder of this name a meaning, and its files would not become tools. \
             Choose another name"
        ));
    }
    let folder = root.join("tools").join(folders.join("/"));
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let file = folder.join(format!("{name}.rs"));
    let mut target = OpenOptions::new().write(true).create_new(true).open(&file).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            format!("{} is there already; choose another name", file.display())
        } else {
            format!("cannot write {}: {error}", file.display())
        }
    })?;
    target
        .write_all(content(name).as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;

    let full_name = path.replace('/', ".");
    let shown = file.strip_prefix(root).unwrap_or(&file).display();
    println!("Wrote {shown}. Now:");
    let next = [
        (format!("cargo test -p tools {name}"), "run its test"),
        (format!("cargo xtask call {full_name} '{{\"text\": \"hello\"}}'"), "call it"),
        (format!("cargo run -- chat \"Use {name}: hello\""), "have the model call it"),
    ];
    let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    for (command, what) in next {
        println!("  {command:width$}   {what}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What all providers take as a name, and Rust as an identifier.
fn check_name(name: &str) -> Result {
    // The words of Rust that would pass as a name; the compiler's message for one of them would not say so.
    const WORDS: &[&str] = &[
        "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
        "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
        "return", "self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where",
        "while", "abstract", "become", "box", "do", "final", "gen", "macro", "override", "priv", "try",
        "typeof", "unsized", "virtual", "yield",
    ];
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let legal = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !begins || !legal || name.len() > 64 {
        return Err(format!(
            "`{name}` cannot be a name: begin with a small letter and use small letters, digits and `_`, at most 64. {USAGE}"
        ));
    }
    if WORDS.contains(&name) {
        return Err(format!("`{name}` is a word of Rust; choose another name"));
    }
    Ok(())
}

fn content(name: &str) -> String {
    let title = name.replace('_', " ");
    format!(
        r#"//! {title}.

use registry_core::prelude::*;

/// TODO: say what it does, when to use it and what it returns. The model chooses the tool by this.
#[tool]
async fn {name}(
    /// TODO: say what the model is to give.
    text: String,
) -> Result<String, ToolError> {{
    Ok(format!("{name} was given: {{text}}"))
}}

#[cfg(test)]
mod tests {{
    #[tokio::test]
    async fn {name}_answers() {{
        let answer = super::{name}("hello".to_owned()).await.unwrap();
        assert_eq!(answer, "{name} was given: hello");
    }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_tool(root: &Path, path: &str) -> Result<ExitCode> {
        run(root, &[path.to_owned()])
    }

    #[test]
    fn a_tool_is_written_once() {
        let root = tempfile::tempdir().unwrap();
        assert!(new_tool(root.path(), "travel/weather").is_ok());
        let text = fs::read_to_string(root.path().join("tools/travel/weather.rs")).unwrap();
        assert!(text.contains("async fn weather("), "{text}");
        assert!(new_tool(root.path(), "travel/sea/weather").is_ok());
        assert!(root.path().join("tools/travel/sea/weather.rs").is_file());
        let error = new_tool(root.path(), "travel/weather").unwrap_err();
        assert!(error.contains("is there already"), "{error}");
    }

    #[test]
    fn a_name_that_cannot_be_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let deep = new_tool(root.path(), "a/b/c/d/e/f/g/h/i/x").unwrap_err();
        assert!(deep.contains("8 folders at most"), "{deep}");
        for name in ["tests/x", "src/x", "examples/x", "benches/x", "target/x"] {
            assert!(new_tool(root.path(), name).unwrap_err().contains("cannot be a module"), "{name}");
        }
        for name in [
            "Weather", "_weather", "2fa", "a//c", "a/type/c", "a/../x", "../x", "/x", "a/", "type", "gen",
            "", "wétter", "a-b",
        ] {
            assert!(new_tool(root.path(), name).is_err(), "{name}");
        }
        assert!(fs::read_dir(root.path()).unwrap().next().is_none());
    }
}
