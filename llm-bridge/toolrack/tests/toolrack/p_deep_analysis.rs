//! A tool that asks the model behind the bridge: over the wire, and as `toolrack call` makes the call.

use std::{
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use crate::support::{Answer, Reply, Scripted};
use llm_bridge::upstream::{Upstream, UpstreamModel};
use registry_core::ErrorKind;
use registry_core::model::{LanguageModel, ModelAnswer, ModelQuestion};
use serde_json::Value;

fn question() -> ModelQuestion {
    ModelQuestion { system: "Be brief.".into(), prompt: "Why?".into(), max_tokens: 77 }
}

async fn model(reply: Reply) -> (UpstreamModel, Scripted) {
    let scripted = Scripted::start([reply]).await;
    let base = format!("http://{}/v1", scripted.address);
    let upstream = Upstream::http(&base, None, Duration::from_secs(5)).unwrap();
    (UpstreamModel::new(upstream, Some("m".into())), scripted)
}

#[tokio::test]
async fn p6_a_model_is_asked_without_tools_and_its_thinking_is_no_answer() {
    let answer = Answer::text("<think>Hm. [1]</think>\nBecause ").say("of [2].").usage(30, 12);
    let (model, scripted) = model(answer.into()).await;
    let answer = model.answer(question()).await.unwrap();
    assert_eq!(
        answer,
        ModelAnswer { text: "Because of [2].".into(), input_tokens: 30, output_tokens: 12, truncated: false }
    );
    let asked = scripted.asked();
    let body = &asked.first().unwrap().body;
    assert_eq!((&body["model"], &body["max_tokens"]), (&Value::from("m"), &Value::from(77)));
    assert_eq!(body["messages"][0]["content"], "Be brief.");
    assert_eq!(body["messages"][1]["content"], "Why?");
    assert!(body.get("tools").is_none());
}

#[tokio::test]
async fn p6_a_model_that_cannot_be_asked_is_told_and_may_be_asked_again() {
    let (refusing, _server) = model(Reply::error(500, "out of memory")).await;
    let error = refusing.answer(question()).await.unwrap_err();
    assert!(error.message().contains("out of memory") && error.is_retryable(), "{error}");
    assert!(!error.feedback().contains("memory"), "{}", error.feedback());
    let (refusing, _server) = model(Reply::error(400, "exceeds the available context size")).await;
    let error = refusing.answer(question()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidArguments, false));
    assert!(error.message().contains("context size") && error.feedback().contains("too long"), "{error}");
    assert_eq!(refusing.name().await.unwrap(), "m");
    let demo = UpstreamModel::new(Upstream::demo(), None);
    assert!(demo.name().await.unwrap_err().message().contains("demo model"));
    let error = demo.answer(question()).await.unwrap_err();
    assert!(error.message().contains("demo model") && error.feedback().contains("no model"), "{error}");
}

/// Runs the program in a folder, with that model server.
fn program(folder: &Path, upstream: String) -> impl Fn(&[&str]) -> Output + Clone + Send + 'static {
    let folder = folder.to_owned();
    move |arguments| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_"))
        {
            command.env_remove(name);
        }
        command.args(arguments).args(["--upstream", &upstream, "--model", "m"]);
        command.current_dir(&folder).output().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_the_documents_are_analysed_through_the_upstream() {
    let scripted = Scripted::start([
        Reply::text("green tea temperature\nprice of espresso"),
        Reply::text("ENOUGH"),
        Reply::text("<think>Easy.</think>It is steeped at 75 degrees [1]. [9]"),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("tea.md"),
        "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n",
    )
    .unwrap();
    let run = program(folder.path(), format!("http://{}/v1", scripted.address));
    let output = tokio::task::spawn_blocking(move || {
        assert!(run(&["documents", "add", "tea.md"]).status.success());
        run(&["call", "deep_analysis", "{\"question\": \"How hot is green tea made?\"}"])
    })
    .await
    .unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    let reply: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {reported}"));
    assert_eq!(reply["result"]["answer"], "It is steeped at 75 degrees [1].", "{reply}");
    assert_eq!(reply["result"]["sources"][0]["section"], "Tea > Green");
    assert_eq!(reply["result"]["sources"][0]["place"], "line 5");
    for status in [
        "Splitting the question",
        "Searching the documents for \"price of espresso\"",
        "Writing the answer from 1 passage",
    ] {
        assert!(reported.contains(status), "{status}: {reported}");
    }
    assert_eq!(scripted.asked().len(), 3);
}

#[test]
fn p6_with_the_demo_model_the_analysis_is_off_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_toolrack"))
        .args(["tools", "list", "--upstream", "demo"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let reason = listed.lines().rfind(|line| line.contains("deep_analysis")).unwrap();
    assert!(reason.contains("needs"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_the_model_server_draws_names_from_documents_on_the_command_line() {
    let fault = || Reply::error(500, "out of memory");
    let scripted = Scripted::start([
        Reply::text("<think>Hm.</think>{\"subject\": \"green tea\", \"relation\": \"is steeped at\", \"object\": \"75 degrees\"}"),
        fault(),
        Reply::text("I see no names."),
        fault(),
        fault(),
        fault(),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tea.txt"), "At noon green tea is steeped at 75 degrees.\n").unwrap();
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    std::fs::write(folder.path().join("notes/a.txt"), "one\n").unwrap();
    let run = program(folder.path(), format!("http://{}/v1", scripted.address));
    let demo = program(folder.path(), "demo".to_owned());
    let (first, reported) = tokio::task::spawn_blocking(move || {
        let reported = |output: Output| {
            (output.status.code(), String::from_utf8_lossy(&output.stderr).replace('\n', " "))
        };
        let first = reported(run(&["documents", "extract"]));
        assert!(run(&["documents", "add", "tea.txt", "notes"]).status.success());
        let more = [&["tea.txt"][..], &["notes"], &["notes", "tea.txt"], &["nowhere"], &[]].map(|paths| {
            let output = run(&[&["documents", "extract"], paths].concat());
            reported(output)
        });
        std::fs::write(folder.path().join("notes/b.txt"), "two\n").unwrap();
        std::fs::write(folder.path().join("notes/c.txt"), "three\n").unwrap();
        std::fs::write(folder.path().join("notes/d.txt"), "four\n").unwrap();
        assert!(run(&["documents", "add", "notes"]).status.success());
        let failing = reported(run(&["documents", "extract"]));
        let found = run(&["call", "graph_search", "{\"entity\": \"Green Tea\"}"]);
        assert!(String::from_utf8_lossy(&found.stdout).contains("\"relation\": \"steeped_at\""));
        let demo = reported(demo(&["documents", "extract"]));
        drop(folder);
        (first, (more, failing, demo))
    })
    .await
    .unwrap();
    assert_eq!(first.0, Some(1));
    assert!(first.1.contains("there are no documents yet"), "{first:?}");
    let (more, failing, demo) = reported;
    for (reported, code, parts) in [
        (&more[0], 0, &["1 passage read, 2 names and 1 relation found, "][..]),
        (&more[1], 1, &["0 passages read", "m failed at 1 passage; extract again"]),
        (&more[2], 0, &["1 passage read, 0 names", "of 1 passage the answer of m could not be read"]),
        (&more[3], 1, &["there is no document nowhere"]),
        (&more[4], 0, &["0 passages read, 0 names and 0 relations found, 0 tokens"]),
        (&failing, 1, &["0 passages read", "out of memory", "extract again to go on"]),
        (
            &demo,
            1,
            &["the built-in demo model answers no questions of tools; start a model server, or name one"],
        ),
    ] {
        assert_eq!(reported.0, Some(code), "{reported:?}");
        for part in parts {
            assert!(reported.1.contains(part), "{part}: {reported:?}");
        }
    }
    let asked = scripted.asked();
    assert_eq!(asked.len(), 6);
    let prompt = asked.first().unwrap().body["messages"][1]["content"].as_str().unwrap();
    assert!(prompt.ends_with("Passage:\nAt noon green tea is steeped at 75 degrees."), "{prompt}");
}
