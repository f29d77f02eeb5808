//! `cargo xtask corpus`: what it counts as right, what it tells, how it ends.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const MIXED_WRONG: [&str; 7] = [
    "other argument",
    "other name",
    "no call",
    "one call too many",
    "other text",
    "mark that others drop",
    "other thinking",
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus").join(name)
}

/// What the command prints and complains of, and whether it ends well.
fn corpus(folder: &Path, exceptions: Option<&str>, options: &[&str]) -> (String, String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("corpus").arg(folder).args(options);
    let file = tempfile::NamedTempFile::new().unwrap();
    if let Some(exceptions) = exceptions {
        fs::write(file.path(), exceptions).unwrap();
        command.arg("--exceptions").arg(file.path());
    }
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

/// The shares in a row of a table: cases, calls, content, reasoning, pieces.
fn row(printed: &str, table: &str, suite: &str, dialect: &str) -> Vec<String> {
    let from = printed.lines().skip_while(|line| !line.starts_with(&format!("{table}  ")));
    let line = from.skip(1).find(|line| line.starts_with(suite) && line.contains(dialect)).unwrap();
    line.split_whitespace().filter(|word| word.contains('/')).map(str::to_owned).collect()
}

#[test]
fn a_folder_that_is_read_as_expected() {
    let (printed, told, good) = corpus(&folder("right"), Some(""), &[]);
    assert!(good, "{printed}{told}");
    assert_eq!(row(&printed, "scored", "json", "hermes"), ["6/6", "6/6", "6/6", "1/1", "6/6"]);
    assert_eq!(row(&printed, "scored", "tags", "qwen3_coder"), ["2/2", "2/2", "1/1", "0/0", "2/2"]);
    assert_eq!(row(&printed, "scored", "~ all", "~ all"), ["8/8", "8/8", "7/7", "1/1", "8/8"]);
    assert!(printed.ends_with("\n8 of 8 right, 0 wrong; exceptions: 0 ours, 0 wrong (at most 0)\n"));
}

#[test]
fn what_is_wrong_is_told() {
    let (printed, told, good) = corpus(&folder("mixed"), Some(""), &[]);
    assert!(!good, "{printed}{told}");
    assert_eq!(row(&printed, "scored", "mixed", "hermes"), ["1/8", "4/8", "5/8", "0/1", "8/8"]);
    for name in MIXED_WRONG {
        assert!(printed.contains(&format!("\nmixed/{name}\n  ")), "{name}: {printed}");
    }
    for absent in ["\nmixed/right", "disputed", "observed", "input:"] {
        assert!(!printed.contains(absent), "{absent}: {printed}");
    }
    for shown in [
        "calls: add({\"a\": 1, \"b\": 2})\n    not: add({\"a\": 1, \"b\": 3})",
        "calls: none\n    not: add(",
        "content: \"One  two\"\n    not: \"One three\"",
        "reasoning: \"a\"\n    not: \"c\"",
    ] {
        assert!(printed.contains(shown), "{shown}: {printed}");
    }
}

#[test]
fn verbose_shows_the_input_and_both_readings() {
    let (printed, ..) = corpus(&folder("mixed"), Some(""), &["--verbose"]);
    assert!(printed.contains(r#"  input: "<think>a</think>b""#), "{printed}");
    assert!(printed.contains(r#"  read: {"content":"b","reasoning":"a","calls":[]"#), "{printed}");
    assert!(printed.contains(r#"  expected: {"calls": [], "content": "b", "reasoning": "c"}"#), "{printed}");
}

#[test]
fn what_is_not_scored_is_counted_apart_and_decides_nothing() {
    let listed: String = MIXED_WRONG.iter().map(|name| format!("mixed/{name}\tours\tso decided\n")).collect();
    let (printed, told, good) = corpus(&folder("mixed"), Some(&listed), &["--all"]);
    assert!(good, "{printed}{told}");
    assert_eq!(row(&printed, "not scored", "mixed", "hermes")[..2], ["1/2", "1/2"]);
    assert_eq!(row(&printed, "not scored", "mixed", "bare_json")[..2], ["1/2", "1/2"]);
    for name in ["disputed, nobody is right", "observed, wrong"] {
        assert!(printed.contains(&format!("\nmixed/{name}\n")), "{printed}");
    }
    assert!(!printed.contains("the other is right"), "{printed}");
    assert!(
        printed.ends_with("\n1 of 8 right, 0 wrong; exceptions: 7 ours, 0 wrong (at most 0)\n"),
        "{printed}"
    );
}

#[test]
fn exceptions_have_to_be_wrong_and_few() {
    let line = |name: &str, kind: &str| format!("mixed/{name}\t{kind}\tbecause\n");
    let all_but_one: String = MIXED_WRONG.iter().skip(1).map(|name| line(name, "ours")).collect();
    let first = MIXED_WRONG.first().unwrap();
    let (printed, _, good) =
        corpus(&folder("mixed"), Some(&(all_but_one.clone() + &line(first, "wrong"))), &[]);
    assert!(!good && printed.contains("more than 1 %"), "{printed}");
    let complete = all_but_one.clone() + &line(first, "ours");
    let (printed, _, good) =
        corpus(&folder("mixed"), Some(&(complete.clone() + &line("right", "ours"))), &[]);
    assert!(!good && printed.contains("\nmixed/right\n  listed as an exception, but right"), "{printed}");
    let (printed, _, good) = corpus(&folder("mixed"), Some(&(complete + &line("elsewhere", "wrong"))), &[]);
    assert!(good && printed.contains(", 1 of cases that are not here"), "{printed}");
}

#[test]
fn faults_are_told_with_their_lines() {
    let cases = tempfile::tempdir().unwrap();
    let good = fs::read_to_string(folder("right/tags.jsonl")).unwrap();
    let first = good.lines().next().unwrap();
    let bad = [
        ("no JSON".to_owned(), "expected"),
        (first.replace("\"asserted\"", "\"guessed\""), "`strength`"),
        (first.replace("\"expect\"", "\"expected\""), "`expect`"),
        (first.replace("\"calls\": [", "\"calls\": [5, "), "invalid type"),
        (first.replace("\"tools\": [", "\"tools\": [\"say\", "), "`tools`"),
        (first.replace("\"content\": null", "\"content\": 1"), "`content`"),
        (first.replace("\"streaming\": true", "\"thinking\": 1"), "`thinking`"),
        (first.replace("\"streaming\": true", "\"disputed\": true"), "`also`"),
    ];
    let text: String = bad.iter().map(|(line, _)| format!("{line}\n\n")).collect();
    fs::write(cases.path().join("bad.jsonl"), good.clone() + &text).unwrap();
    let (printed, told, good) = corpus(cases.path(), Some(""), &[]);
    assert!(!good && printed.is_empty(), "{printed}");
    assert_eq!(told.lines().count(), bad.len(), "{told}");
    for ((number, line), (_, word)) in told.lines().enumerate().zip(&bad) {
        assert!(line.contains(&format!("bad.jsonl:{}: ", 2 * number + 3)) && line.contains(word), "{line}");
    }
    for (exceptions, fault) in [
        ("a\tours\tb\n\nmixed/right\tbecause", ":3: behind the id"),
        ("a\twrong", ":1: there is no reason"),
        ("a\tours\tb\na\twrong\tb", ":2: this id is listed twice"),
    ] {
        let (_, told, good) = corpus(&folder("right"), Some(exceptions), &[]);
        assert!(!good && told.contains(fault), "{told}");
    }
}

#[test]
fn wrong_usage_is_told() {
    let nothing = tempfile::tempdir().unwrap();
    for (path, options, word) in [
        (nothing.path().to_owned(), &[][..], "no case that is scored"),
        (nothing.path().join("missing"), &[], "cannot read"),
        (folder("right"), &["--quick"], "`--quick`"),
        (folder("right"), &["--exceptions"], "names no file"),
        (folder("right"), &["--exceptions", "/nowhere/at/all"], "cannot read /nowhere"),
        (folder("right"), &["other"], "one folder"),
    ] {
        let (_, told, good) = corpus(&path, None, options);
        assert!(!good && told.contains(word), "{word}: {told}");
    }
}

/// The cases of other projects, in a folder beside the project.
#[test]
fn b1_corpus() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/dialects");
    if !cases.exists() {
        println!("skipped: ../shared/corpus/dialects is not here");
        return;
    }
    let (printed, told, good) = corpus(&cases, None, &[]);
    assert!(good, "{printed}{told}");
}
