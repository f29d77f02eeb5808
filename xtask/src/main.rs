//! The developer's commands. One file for each; they link next to nothing, so they start at once.

mod add;
mod dev;
mod fmt;
mod many_tools;
mod new_crate;
mod new_tool;
mod toolrack;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  dev [OPTIONS] [-- CARGO ARGUMENTS]           build, serve, and have a saved tool taken over by the running server
  new-tool [MODULE/…]NAME                      write a tool that compiles, with a test
  new-crate NAME [FOLDER]                      write a crate of tools for others, with a tool, a resource and tests
  add CRATE[@VERSION] | FOLDER | --git URL     add a crate of tools to tools/Cargo.toml, and list its tools
  fmt [--check]                                format all code; `cargo fmt` does not find the tool files
  list-tools [--json] [--level LEVEL] [--module M] [--allowed NAMES] [--search TEXT] [--tag T] [--tenant NAME]
                                               list the tools with their approximate tokens in a prompt, and why one
                                               is off
  list-tools --format PROVIDER [--strict]      print their definitions in a provider's format
  call NAME [--ARGUMENT VALUE …] [JSON] [--level LEVEL] [--yes] [--tenant NAME]
                                               call a tool and print its result; `call NAME --help` lists its arguments
  try [TOOL …] [-n N] [--at-least PERCENT] [--json] [--model NAME]
                                               ask the model the questions of the tools' examples, and see which tools
                                               it calls; none runs
  list-modules [--server URL] [--json]         list the modules of a running server; the key is in TOOLRACK_KEY
  refresh-tools [--server URL] [--json]        refresh the tools of a running server's modules
  check [--budget TOKENS]                      check names, descriptions, schemas, duplicates, size of the prompt
  corpus DIR [--all] [--pin]                   score the scanner against a folder of cases; see docs/testing.md
  many-tools [COUNT]                           measure build, start and prompt size of many tools, compared with rmcp and tools-rs
";

type Result<T = ()> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let done = match command.as_str() {
        "dev" => dev::run(&project_root(), &rest),
        "new-tool" => new_tool::run(&project_root(), &rest),
        "new-crate" => new_crate::run(&project_root(), &rest),
        "add" => add::run(&project_root(), &rest),
        "fmt" => fmt::run(&project_root(), &rest),
        "list-tools" => toolrack::run(&["tools", "list"], &rest),
        "call" => toolrack::run(&["call"], &rest),
        "try" => toolrack::run(&["try"], &rest),
        "list-modules" => toolrack::run(&["modules", "list"], &rest),
        "refresh-tools" => toolrack::run(&["modules", "refresh"], &rest),
        "check" => toolrack::run(&["tools", "check"], &rest),
        "corpus" => toolrack::example("toolrack-dialects", "corpus", &rest),
        "many-tools" => many_tools::run(&project_root(), &rest),
        "" | "help" | "-h" | "--help" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("there is no command `{other}`\n\n{USAGE}")),
    };
    done.unwrap_or_else(|message| {
        eprintln!("error: {message}");
        ExitCode::FAILURE
    })
}

/// The folder of the workspace.
fn project_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
