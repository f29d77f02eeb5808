//! Parsing options in the program and in a chat.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::support::{Answer, Setup};
use serde_json::{Value, json};

/// A call whose closing mark is missing.
const OPEN: &str = "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}";

#[tokio::test]
async fn a_chat_reads_by_its_settings() {
    let rack = Setup::new().start([Answer::text(OPEN), Answer::text("Three.")].map(Into::into)).await;
    rack.ask(true).await.expect("Three.");
    assert_eq!(rack.ran().len(), 1);
    for stream in [true, false] {
        let setup = Setup::new().chat(|chat| chat.parsing = "only_closed".parse().unwrap());
        let rack = setup.start([Answer::text(OPEN).into()]).await;
        rack.ask(stream).await.expect(OPEN);
        assert_eq!(rack.ran(), []);
    }
}

/// The program takes options for all of its lines, and for a single one.
#[test]
fn the_program_takes_parsing_options() {
    let run = |arguments: &[&str], input: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_toolrack"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that ends early does not read.
        let _ = program.stdin.take().unwrap().write_all(input.as_bytes());
        let output = program.wait_with_output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let calls = |line: &str| serde_json::from_str::<Value>(line).unwrap()["calls"].as_array().unwrap().len();
    assert_eq!(calls(&run(&["parse"], OPEN).0), 1);
    assert_eq!(calls(&run(&["parse", "--parsing", "only_closed,trim_values"], OPEN).0), 0);
    let lines = [
        json!({"input": OPEN}),
        json!({"input": OPEN, "parsing": {"only_closed": true}}),
        json!({"input": OPEN, "parsing": {}}),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let count = |arguments: &[&str]| run(arguments, &lines).0.lines().map(calls).collect::<Vec<_>>();
    assert_eq!(count(&["parse", "--jsonl"]), [1, 0, 1]);
    assert_eq!(count(&["parse", "--jsonl", "--parsing", "only_closed"]), [0, 0, 1]);
    let (_, reported) = run(&["parse", "--parsing", "closed"], "");
    assert!(reported.contains("--parsing") && reported.contains("`only_closed`"), "{reported}");
    let (reported, _) = run(&["parse", "--jsonl"], "{\"input\": \"\", \"parsing\": {\"closed\": true}}");
    assert!(reported.contains("line 1") && reported.contains("`only_closed`"), "{reported}");
}
