//! `toolrack try` before models that choose well and badly.

use std::{
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use serde_json::{Value, json};

use crate::support::{Answer, Asked, Character, Reply, Scripted, Site};

fn run(folder: &Path, upstream: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    let always = ["try", "--model", "scripted", "--upstream", upstream];
    command.args(always).args(arguments).current_dir(folder).output().unwrap()
}

/// The exit code, the report and what was reported besides.
fn tried(folder: &Path, upstream: &str, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = run(folder, upstream, &[&["--json", "-n", "3"], arguments].concat());
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, String::from_utf8(output.stderr).unwrap())
}

async fn scripted(character: Character) -> Scripted {
    Scripted::acting(Site::default(), character).await
}

fn call(name: &str, arguments: Value) -> Reply {
    Answer::new().call("call_1", name, &arguments).into()
}

/// Right, wrong, other and no calls, by the question.
fn mixed(asked: &Asked) -> Reply {
    let asks_for = |word: &str| asked.text.contains(word);
    if asks_for("in Tokyo") {
        call("current_time", json!({"time_zone": "Asia/Tokyo"}))
    } else if asks_for("times 987654321") {
        call("current_time", json!({}))
    } else if asks_for("Delete the file") {
        call("file_manager_delete_file", json!({"path": "milk.md"}))
    } else if asks_for("as a claim") {
        call("claim", json!({"text": "The bridge was opened in 1932."}))
    } else if asks_for("buy milk") {
        Reply::text(
            "<tool_call>{\"name\": \"file_manager_create_document\", \"arguments\": {\"path\": \"notes/milk.md\", \"content\": \"Buy milk\"}}</tool_call>",
        )
    } else {
        Reply::text("I cannot do that.")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_the_table_says_what_the_model_has_called() {
    let scripted = scripted(mixed).await;
    let folder = tempfile::tempdir().unwrap();
    let (code, report, reported) = tried(folder.path(), &scripted.base(), &[]);
    assert_eq!(code, Some(1), "{reported}");
    assert_eq!(report["model"], "scripted", "{report:#}");
    let row = |tool: &str| {
        let rows = report["examples"].as_array().unwrap();
        rows.iter().find(|row| row["tool"] == tool).unwrap_or_else(|| panic!("{tool}: {report:#}"))
    };
    for (tool, chosen, right) in [
        ("current_time", 3, 3),
        // As text, too.
        ("file_manager.create_document", 3, 3),
        ("file_manager.delete_file", 3, 0),
        ("claim", 3, 0),
        ("calculate", 0, 0),
        ("learning", 0, 0),
    ] {
        let row = row(tool);
        assert_eq!((&row["chosen"], &row["right"]), (&json!(chosen), &json!(right)), "{row:#}");
        assert_eq!(row["advice"].as_array().unwrap().is_empty(), right == 3, "{row:#}");
    }
    assert_eq!(row("calculate")["instead"], json!({"current_time": 3}));
    assert_eq!(row("learning")["no_call"], 3);
    let wrong = &row("file_manager.delete_file")["differences"];
    assert_eq!(*wrong, json!([{"argument": "path", "given": "\"milk.md\"", "times": 3}]));
    let invalid = row("claim")["invalid"].as_object().unwrap();
    assert!(invalid.keys().all(|error| error.contains("assertion")), "{invalid:?}");
    // What cannot be used is not tried, which a program that reads this has to know.
    let not_tried = report["not_tried"].as_array().unwrap();
    let reason =
        |tool: &str| not_tried.iter().find(|one| one["tool"] == tool).map(|one| one["reason"].to_string());
    assert!(reason("web_search").unwrap().contains("needs SearchEngine"), "{not_tried:?}");
    assert_eq!(reason("calculate"), None);
    // Nothing has run: no file, no inbox.
    assert!(
        !folder.path().join(".toolrack/files").exists() && !folder.path().join(".toolrack/inbox").exists()
    );
}

/// The demo goes by the words of a question, each time alike.
#[test]
fn b18_the_table_says_what_the_demo_has_called() {
    let folder = tempfile::tempdir().unwrap();
    let (code, report, reported) =
        tried(folder.path(), "demo", &["current_time", "claim", "learning", "calculate"]);
    assert!(code == Some(1) && reported.contains("the built-in demo"), "{reported}");
    let rows = report["examples"].as_array().unwrap();
    let counts = |row: &Value| (row["chosen"].as_u64().unwrap(), row["right"].as_u64().unwrap());
    assert_eq!(rows.iter().map(counts).collect::<Vec<_>>(), [(3, 3), (3, 0), (0, 0), (0, 0)], "{report:#}");
    assert_eq!(rows[1]["differences"], json!([{"argument": "assertion", "given": "\"1932\"", "times": 3}]));
    assert_eq!((&rows[2]["no_call"], &rows[3]["instead"]), (&json!(3), &json!({"current_time": 3})));
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_a_run_is_compared_with_the_last_and_ends_as_a_check() {
    let scripted = scripted(mixed).await;
    let folder = tempfile::tempdir().unwrap();
    let ran = |arguments: &[&str]| tried(folder.path(), &scripted.base(), arguments);
    let (code, report, reported) = ran(&["current_time"]);
    assert_eq!((code, &report["examples"][0]["before"]), (Some(0), &Value::Null), "{reported}");
    let (_, report, _) = ran(&["current_time", "calculate"]);
    assert_eq!(report["examples"][0]["before"], json!({"tries": 3, "chosen": 3, "right": 3}));
    assert_eq!(report["examples"].as_array().unwrap().len(), 2);
    // Half of the calls have to be right, or as many as are asked for.
    assert_eq!(ran(&["calculate"]).0, Some(1));
    assert_eq!(ran(&["calculate", "--at-least", "0"]).0, Some(0));
    for (arguments, said) in [
        (&["calculat"][..], "did you mean `calculate`?"),
        (&["web_search"], "needs SearchEngine"),
        (&["scheduler.add_job", "--level", "admin"], "has no example"),
    ] {
        let (code, _, reported) = ran(arguments);
        assert!(code == Some(1) && reported.contains(said), "{arguments:?}: {reported}");
    }
    let (code, _, reported) = tried(folder.path(), "http://127.0.0.1:9/v1", &["calculate"]);
    assert!(code == Some(1) && reported.contains("127.0.0.1:9"), "{reported}");
}

/// The guide shows what is printed.
#[tokio::test(flavor = "multi_thread")]
async fn b18_the_table_of_the_guide_is_a_real_one() {
    /// Calls `calculate` as it should be called once in the first run, and three times in the second.
    fn learns(asked: &Asked) -> Reply {
        static CALCULATIONS: AtomicUsize = AtomicUsize::new(0);
        if asked.messages().iter().any(|message| message["role"] == "tool") {
            return Reply::text("So it is.");
        }
        if asked.text.contains("in Tokyo") {
            return call("current_time", json!({"time_zone": "Tokyo"}));
        }
        match CALCULATIONS.fetch_add(1, Relaxed) {
            // The first run.
            0 => call("calculate", json!({"expression": "123456789 * 987654321"})),
            1..=4 => Reply::text("About 1.2e17."),
            // The second.
            5 => call("current_time", json!({})),
            6 => call("calculate", json!({"expression": "123456789 + 987654321"})),
            _ => call("calculate", json!({"expression": "123456789 * 987654321"})),
        }
    }

    let scripted = scripted(learns).await;
    let folder = tempfile::tempdir().unwrap();
    let ran = |code: i32| {
        let output = run(folder.path(), &scripted.base(), &["calculate", "current_time"]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>()
    };
    ran(1);
    let table = ran(0).replace(&scripted.base(), "http://127.0.0.1:11434/v1");
    let guide = include_str!("../../../../docs/writing-tools.md");
    assert!(guide.contains(&format!("```text\n{table}```\n")), "the guide has another table than\n{table}");
}
