//! `toolrack launch` with a program in place of a coding agent.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    process::{Command, Output, Stdio},
};

use serde_json::json;

/// A server that answers every request as a Toolrack without a configured model does; its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let asked = lines.next().unwrap_or_default();
            let headers: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let has_key = headers.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer k1"));
            let body = match (asked.contains("/healthz"), has_key) {
                (true, _) => json!({"status": "ok", "model": null}),
                (false, true) => json!({"data": [{"id": "first"}, {"id": "second"}]}),
                (false, false) => json!({"data": []}),
            };
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    address
}

/// The command, with a folder in which the script is the agent's program.
fn launch(agent: &str, script: &str, arguments: &[&str]) -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(agent);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    command.args(["launch", agent]).args(arguments).current_dir(folder.path());
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    command.env("ANTHROPIC_API_KEY", "elsewhere").env_remove("XDG_DATA_HOME").env("HOME", folder.path());
    command.stdin(Stdio::null());
    (folder, command)
}

fn reported(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn b13_launch_starts_the_program_with_address_key_and_model() {
    let server = server();
    let script =
        "echo \"$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN $ANTHROPIC_MODEL [$ANTHROPIC_API_KEY] $*\"; exit 7";
    let (_folder, mut command) =
        launch("claude", script, &["--url", &server, "--key", "k1", "--", "-p", "Hi there"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", reported(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{server} k1 first [] -p Hi there\n"));
    let report = reported(&output);
    for part in
        [&*format!("ANTHROPIC_BASE_URL={server}"), "ANTHROPIC_MODEL=first", "ANTHROPIC_API_KEY is removed"]
    {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(!report.contains("k1"), "{report}");
}

#[test]
fn b13_launch_prints_what_it_would_start() {
    let server = server();
    let (folder, mut command) =
        launch("gemini", "echo started", &["--url", &server, "--model", "m", "--print"]);
    let output = command.output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && lines.contains("export GEMINI_MODEL=m\n"), "{lines}");
    assert!(lines.ends_with("\ngemini\n") && !lines.contains("started"), "{lines}");
    assert!(!folder.path().join(".local").exists(), "nothing is written");
}

#[test]
fn b13_launch_hands_signals_to_the_program() {
    let server = server();
    let arguments = ["--url", &server, "--model", "m"];
    let (_folder, mut command) = launch("qwen", "echo started; exec sleep 60", &arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn b13_launch_says_what_is_missing() {
    let server = server();
    let run = |arguments: &[&str]| {
        let (folder, mut command) = launch("opencode", "exit 0", arguments);
        fs::remove_file(folder.path().join("opencode")).unwrap();
        let output = command.output().unwrap();
        assert!(!output.status.success());
        reported(&output)
    };
    let report = run(&["--url", &server, "--model", "m"]);
    assert!(report.contains("install it with `npm install -g opencode-ai`"), "{report}");
    let report = run(&["--url", "http://127.0.0.1:9"]);
    assert!(report.contains("start one with `toolrack serve`"), "{report}");
    let report = run(&["--url", &server]);
    assert!(report.contains("name one with --model"), "{report}");
}

#[test]
fn u7_health_tells_by_its_exit_code_whether_a_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let health = |server: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(["health", "--server", server]).current_dir(folder.path()).output().unwrap()
    };
    let running = health(&server());
    assert_eq!(running.status.code(), Some(0), "{}", reported(&running));
    assert!(String::from_utf8_lossy(&running.stdout).contains(r#""status":"ok""#));
    // A port that nobody listens on any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = health(&format!("http://{gone}"));
    assert_eq!(away.status.code(), Some(1));
    assert!(reported(&away).contains("no server answers"), "{}", reported(&away));
}
