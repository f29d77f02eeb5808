//! B3: MCP servers in the configuration, seen from the command line. The server is this program itself, as `toolrack mcp`.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolrack");

fn toolrack(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(folder).output().unwrap()
}

/// A folder with a configuration, and one for the server.
fn site(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let text = format!(
        "[mcp_servers.rack]\ncommand = {PROGRAM:?}\nargs = [\"mcp\"]\ncwd = {inner:?}\nallow = [\"calculate\", \"current_time\"]\n{more}"
    );
    std::fs::write(folder.path().join("toolrack.toml"), text).unwrap();
    folder
}

fn reported(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", reported(output)))
}

#[test]
fn b3_tools_of_a_configured_server_are_listed_and_called() {
    let folder = site("");
    let listed = json_of(&toolrack(folder.path(), &["tools", "list", "--module", "rack", "--json"]));
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rack.calculate", "rack.current_time"]);
    let called = toolrack(folder.path(), &["call", "rack.calculate", r#"{"expression": "6*7"}"#]);
    assert!(called.status.success(), "{}", reported(&called));
    assert!(json_of(&called)["result"].to_string().contains("42"), "{}", json_of(&called));
    let refused = toolrack(folder.path(), &["call", "rack.calculate", "{}", "--level", "guest"]);
    assert_eq!(json_of(&refused)["success"], json!(false));
    let audit = toolrack(folder.path(), &["audit"]);
    assert!(String::from_utf8_lossy(&audit.stdout).contains("rack.calculate"), "{}", reported(&audit));
}

#[test]
fn b3_a_server_that_cannot_be_had_stops_nothing() {
    let folder = site("[mcp_servers.gone]\ncommand = \"toolrack-no-such-program\"\n");
    let called = toolrack(folder.path(), &["call", "calculate", r#"{"expression": "6*7"}"#]);
    assert!(called.status.success(), "{}", reported(&called));
    assert!(reported(&called).contains("no tools from the MCP server gone"), "{}", reported(&called));
    let folder = site("timeout = 0\n");
    let wrong = toolrack(folder.path(), &["tools", "list"]);
    assert!(!wrong.status.success() && reported(&wrong).contains("greater than 0"), "{}", reported(&wrong));
    let folder = site("[mcp_servers.\"a.b\"]\nurl = \"http://127.0.0.1:1/mcp\"\n");
    let wrong = toolrack(folder.path(), &["tools", "list"]);
    assert!(reported(&wrong).contains("mcp_servers.a.b: a name here has"), "{}", reported(&wrong));
}
