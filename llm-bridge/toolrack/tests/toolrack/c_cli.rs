//! The program as a script uses it: what it prints, how it ends, what it refuses.

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

/// Runs the program in a folder of its own.
fn toolrack(arguments: &[&str], variables: &[(&str, &str)], input: &[u8]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    toolrack_in(folder.path(), arguments, variables, input)
}

fn toolrack_in(folder: &Path, arguments: &[&str], variables: &[(&str, &str)], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied()).current_dir(folder);
    let mut program =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that ends early does not read.
    let _ = program.stdin.take().unwrap().write_all(input);
    program.wait_with_output().unwrap()
}

fn reported(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn parse_goes_on_after_a_bad_line() {
    let input =
        b"{\"input\":\"a\",\"thinking\":null}\nbad\n{\"input\":\"b\",\"chunk\":0}\n\n\xff\n{\"input\":\"c\"}";
    let output = toolrack(&["parse", "--jsonl"], &[], input);
    let lines: Vec<Value> = String::from_utf8(output.stdout.clone())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!((&lines[0]["content"], &lines[4]["content"]), (&json!("a"), &json!("c")));
    for (line, number) in [(1, 2), (2, 3), (3, 5)] {
        let error = lines[line]["error"].as_str().unwrap();
        assert!(error.starts_with(&format!("line {number}: ")), "{error}");
    }
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn u7_a_configuration_is_begun_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.toml");
    let init = |more: &[&str]| toolrack_in(folder.path(), &[&["init"], more].concat(), &[], b"");
    // Nobody is there to be asked.
    assert!(reported(&init(&[])).contains("--yes") && !file.exists());
    assert!(reported(&init(&["--yes", "--listen", "nowhere"])).contains("nowhere") && !file.exists());
    assert!(init(&["--yes", "--upstream", "demo"]).status.success());
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("\nupstream = \"demo\"\n") && !written.contains("\napi_key"), "{written}");
    let refused = init(&["--yes", "--upstream", "demo"]);
    assert!(reported(&refused).contains("--force") && refused.status.code() == Some(1));
    // Beyond this machine there is a key.
    let output = init(&["--yes", "--force", "--upstream", "demo", "--listen", "0.0.0.0:7331"]);
    let written = std::fs::read_to_string(&file).unwrap();
    let key = written.lines().find_map(|line| line.strip_prefix("api_key = \"")?.strip_suffix('"')).unwrap();
    assert!(key.len() >= 32 && reported(&output).contains(key));
    assert!(toolrack_in(folder.path(), &["tools", "list"], &[], b"").status.success());
}

#[test]
fn u7_each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = toolrack_in(folder.path(), &["man", "man1"], &[], b"");
    assert!(output.status.success(), "{}", reported(&output));
    let page = std::fs::read_to_string(folder.path().join("man1/toolrack-key-create.1")).unwrap();
    assert!(page.contains(".TH toolrack-key-create 1") && page.contains("\\-\\-tenant"), "{page}");
    let files = std::fs::read_dir(folder.path().join("man1")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.contains("help")), "{names:?}");
}

#[test]
fn wrong_usage_is_told_as_such() {
    for (arguments, word) in [(&["parse", "--chunk", "0"][..], "--chunk"), (&["chat", " "], "empty")] {
        let output = toolrack(arguments, &[], b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(reported(&output).contains(word), "{}", reported(&output));
    }
    let output = toolrack(&["tools", "list"], &[("TOOLRACK_LOG", "a=b=c")], b"");
    assert!(!output.status.success() && reported(&output).contains("TOOLRACK_LOG"), "{}", reported(&output));
    let output = toolrack(&["tools", "list", "--verbose"], &[("TOOLRACK_LOG", "a=b=c")], b"");
    assert!(output.status.success(), "{}", reported(&output));
    let output = toolrack(&["tools", "list"], &[("TOOLRACK_LOG_FORMAT", "xml")], b"");
    assert!(
        !output.status.success() && reported(&output).contains("`text` or `json`"),
        "{}",
        reported(&output)
    );
}

#[test]
fn the_log_is_an_object_a_line_where_that_is_asked_for() {
    let output =
        toolrack(&["tools", "list"], &[("TOOLRACK_LOG", "debug"), ("TOOLRACK_LOG_FORMAT", "json")], b"");
    let log = reported(&output);
    assert!(output.status.success() && !log.is_empty(), "{log}");
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(event["timestamp"].is_string() && event["level"].is_string(), "{line}");
    }
}

#[test]
fn b11_the_list_says_what_is_deferred_and_what_that_saves() {
    let folder = tempfile::tempdir().unwrap();
    let list = |configuration: &str, arguments: &[&str]| {
        std::fs::write(folder.path().join("toolrack.toml"), configuration).unwrap();
        let output = toolrack_in(folder.path(), &[&["tools", "list"], arguments].concat(), &[], b"");
        (String::from_utf8(output.stdout.clone()).unwrap(), reported(&output))
    };
    let last = |text: &str| text.lines().last().unwrap().to_owned();
    let tokens = |text: &str| -> usize {
        let (_, rest) = text.split_once("about ").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let (all, _) = list("", &[]);
    assert!(!all.contains("search_tools") && !all.contains("deferred"), "{all}");
    let deferring = "deferred_tools = [\"research.*\", \"calculate\"]\n";
    let (some, _) = list(deferring, &[]);
    assert!(some.contains("search_tools") && some.contains("built in"), "{some}");
    assert_eq!(some.matches("yes, deferred").count(), 2, "{some}");
    assert!(last(&some).ends_with(" deferred") && tokens(&last(&some)) < tokens(&last(&all)), "{some}");
    let (json, _) = list(deferring, &["--json"]);
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    let marked = |row: &&Value| row.get("deferred") == Some(&json!(true));
    let marked: Vec<&Value> = rows.iter().filter(marked).filter_map(|row| row.get("name")).collect();
    assert_eq!(marked, ["calculate", "research.fetch_webpage"]);
    // Who may use none of them has no use for the search.
    let settings = "deferred_tools = [\"research.*\"]\n[user]\nallowed_modules = [\"local\"]\n";
    let (json, _) = list(settings, &["--json"]);
    assert!(json.contains("no tool that may be used is deferred"), "{json}");
    let (none, _) = list(settings, &[]);
    assert!(!last(&none).contains("deferred"), "{none}");
    let (_, error) = list("deferred_tools = [\"rese*\"]\n", &[]);
    assert!(
        error.contains("toolrack.toml") && error.contains("line 1") && error.contains("module.*"),
        "{error}"
    );
}

#[test]
fn empty_variables_are_not_set() {
    let names = ["API_KEY", "CONFIG", "DATA_DIR", "LISTEN", "LOG", "MODEL", "UPSTREAM", "UPSTREAM_API_KEY"];
    let variables = names.map(|name| format!("TOOLRACK_{name}"));
    let variables: Vec<(&str, &str)> = variables.iter().map(|name| (name.as_str(), "")).collect();
    let output = toolrack(&["tools", "list"], &variables, b"");
    assert!(output.status.success(), "{}", reported(&output));
}

#[test]
fn without_a_place_for_the_record_nothing_begins() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["chat", "hello"], &["call", "calculate"]] {
        let arguments = [arguments, &["--upstream", "demo", "--data-dir", "file/x"]].concat();
        let output = toolrack_in(folder.path(), &arguments, &[], b"");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(reported(&output).contains("file/x"), "{}", reported(&output));
        assert!(reported(&output).contains("--data-dir"), "{}", reported(&output));
    }
}

#[test]
fn chat_passes_over_blank_lines() {
    let output = toolrack(&["chat", "--upstream", "demo"], &[], b"\n \nWhat is 2 + 3?\n\nWhat is 4 * 5?\n");
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && answers.contains('5') && answers.contains("20"), "{answers}");
}

#[test]
fn a_reader_that_has_enough_is_no_fault() {
    for arguments in [&["tools", "list"][..], &["tools", "check"], &["call", "current_time"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(arguments).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = command.spawn().unwrap();
        drop(program.stdout.take());
        let output = program.wait_with_output().unwrap();
        assert_eq!((output.status.code(), reported(&output)), (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
fn t8_the_inbox_is_in_the_data_folder_or_where_the_settings_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let claim = |variables: &[(&str, &str)]| {
        let output =
            toolrack_in(folder.path(), &["call", "claim", r#"{"assertion": "x is y"}"#], variables, b"");
        assert!(output.status.success(), "{}", reported(&output));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["side_effects"][0].as_str().unwrap().strip_prefix("created:inbox/").unwrap().to_owned()
    };
    let name = claim(&[]);
    assert!(path(".toolrack/inbox").join(name).is_file());
    std::fs::write(path("toolrack.toml"), "[inbox]\nfolder = \"notes\"\n").unwrap();
    let name = claim(&[("TOOLRACK_INBOX_FOLDER", "")]);
    assert!(path("notes").join(name).is_file());
    let name = claim(&[("TOOLRACK_INBOX_FOLDER", "other")]);
    assert!(path("other").join(name).is_file());
    std::fs::write(path("toolrack.toml"), "[inbox]\nfolders = \"notes\"\n").unwrap();
    let output = toolrack_in(folder.path(), &["call", "claim", "{}"], &[], b"");
    assert_eq!(
        reported(&output),
        "error: toolrack.toml:2: [inbox]: there is no `folders`; did you mean `folder`?\n"
    );
    assert!(!output.status.success());
}

#[test]
fn t6_chat_tells_the_word_to_the_user() {
    let output =
        toolrack(&["chat", "--upstream", "demo", "Use claim: Mexico City lies at 2,240 m"], &[], b"");
    assert!(output.status.success(), "{}", reported(&output));
    let lines = reported(&output);
    let done =
        lines.lines().skip_while(|line| !line.starts_with("· claim: done in ")).nth(1).unwrap_or_default();
    assert!(done.starts_with("  Written down in inbox/claims/"), "{lines}");
    assert!(lines.contains("Mexico City lies at 2,240 m"), "{lines}");
}

#[test]
fn check_tells_of_a_length_that_llama_cpp_refuses() {
    let tool = |length: u32| {
        format!(
            r#"[[tools]]
            name = "keep"
            description = "Keeps a text."
            type = "function"
            handler = "fixed"
            implementation = {{ type = "mock", mock_response = "kept" }}
            parameters = {{ type = "object", properties = {{ note = {{ type = "object", description = "A note.", properties = {{ lines = {{ type = "array", items = {{ type = "string", maxLength = {length} }} }} }} }} }} }}
            "#
        )
    };
    for (length, is_fault) in [(1999, false), (2000, true)] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("toolrack.toml"), tool(length)).unwrap();
        let output = toolrack_in(folder.path(), &["tools", "check"], &[], b"");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &reported(&output);
        let fault = "`note.lines` has a `maxLength` of 2000;";
        assert_eq!((printed.contains(fault), output.status.success()), (is_fault, !is_fault), "{printed}");
    }
}

#[test]
fn u9_commands_that_only_read_make_no_folder_and_name_it() {
    let folder = tempfile::tempdir().unwrap();
    for command in
        [&["user", "list"][..], &["key", "list"], &["audit"], &["audit", "verify"], &["audit", "export"]]
    {
        let output = toolrack_in(folder.path(), command, &[], b"");
        assert!(output.status.success(), "{command:?}: {}", reported(&output));
        assert!(reported(&output).contains(".toolrack/toolrack.db"), "{command:?}: {}", reported(&output));
        assert!(!folder.path().join(".toolrack").exists(), "{command:?}");
    }
    let output = toolrack_in(folder.path(), &["user", "add", "ada"], &[], b"");
    assert!(reported(&output).contains(".toolrack/toolrack.db"), "{}", reported(&output));
    let output = toolrack_in(folder.path(), &["user", "list"], &[], b"");
    assert!(reported(&output).contains("1 user in /"), "{}", reported(&output));
    // U16: to the second.
    assert!(!String::from_utf8_lossy(&output.stdout).contains('.'), "{output:?}");
    let output = toolrack_in(folder.path(), &["audit", "--user", "nobody"], &[], b"");
    assert!(reported(&output).contains("no such records in /") && output.stdout.is_empty(), "{output:?}");
    let output = toolrack_in(folder.path(), &["audit", "verify", "--tenant", "none"], &[], b"");
    assert!(reported(&output).contains("no records of the tenant none in /"), "{output:?}");
    let output = toolrack_in(folder.path(), &["key", "list"], &[], b"");
    assert!(reported(&output).contains("0 keys in /"), "{output:?}");
    for command in
        [&["documents", "list"][..], &["documents", "search", "tea"], &["documents", "remove", "a"]]
    {
        let output = toolrack_in(folder.path(), command, &[], b"");
        assert!(reported(&output).contains("no documents yet in /"), "{output:?}");
        assert!(reported(&output).contains(".toolrack/documents.db"), "{output:?}");
    }
}

#[test]
fn u8_it_is_said_which_of_two_users_of_one_name_counts() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| toolrack_in(folder.path(), arguments, &[], b"");
    let refused = run(&["user", "promote", "local", "admin"]);
    assert!(!refused.status.success());
    let said = reported(&refused);
    assert!(
        said.contains("level = \"admin\"") && said.contains("[user]") && !said.contains("user add"),
        "{said}"
    );
    for arguments in [&["user", "add", "local"][..], &["user", "promote", "local", "admin"]] {
        let output = run(arguments);
        assert!(
            output.status.success() && reported(&output).contains("without a key"),
            "{}",
            reported(&output)
        );
    }
    assert!(!reported(&run(&["user", "add", "ada"])).contains("without a key"));
}

#[test]
fn u14_a_misspelt_tool_gets_the_nearest_and_a_models_name_works() {
    let output = toolrack(&["call", "calcluate"], &[], b"");
    assert!(reported(&output).contains("did you mean `calculate`?"), "{}", reported(&output));
    let output = toolrack(&["call", "scheduler_list_jobs", "--level", "admin"], &[], b"");
    assert!(output.status.success(), "{}", reported(&output));
}

#[test]
fn u14_a_taken_address_is_named_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = toolrack(&["serve", "--upstream", "demo", "--listen", &address], &[], b"");
    let said = reported(&output);
    assert!(
        said.contains(&format!("{address} is already in use")) && said.contains("--listen 127.0.0.1:"),
        "{said}"
    );
}

#[test]
fn u15_commands_in_the_chat_are_answered_without_the_model() {
    let output =
        toolrack(&["chat", "--upstream", "demo"], &[], b"/help\n/tools\n/tols\n/quit\nWhat is 2 + 2?\n");
    let said = reported(&output);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    for part in ["/quit", "calculate: ", "did you mean /tools?"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn u16_a_failure_of_the_model_server_is_printed_once() {
    let output = toolrack(&["chat", "--upstream", "http://127.0.0.1:1/v1", "Hello"], &[], b"");
    assert_eq!(reported(&output).matches("cannot reach").count(), 1, "{}", reported(&output));
}

#[cfg(unix)]
#[test]
fn u15_ctrl_c_stops_an_answer_and_the_chat_goes_on() {
    use std::io::{BufRead, BufReader, Read};

    // A model server that takes a question and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}/v1", silent.local_addr().unwrap());
    let (asked, questions) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in silent.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1]);
            open.push(stream);
            if asked.send(()).is_err() {
                break;
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    command.args(["chat", "--upstream", &upstream, "--model", "m"]).current_dir(folder.path());
    let mut chat =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = chat.stdin.take().unwrap();
    let mut said = BufReader::new(chat.stderr.take().unwrap()).lines();
    input.write_all(b"Hello?\n").unwrap();
    let patience = std::time::Duration::from_secs(30);
    questions.recv_timeout(patience).unwrap();
    let interrupt = || Command::new("kill").args(["-INT", &chat.id().to_string()]).status().unwrap();
    interrupt();
    let stopped = said.find_map(|line| line.ok().filter(|line| line.contains("stopped"))).unwrap();
    assert!(stopped.contains("Ctrl-C again"), "{stopped}");
    input.write_all(b"/help\n").unwrap();
    assert!(said.any(|line| line.unwrap().contains("/tools")), "the chat goes on");
    interrupt();
    assert_eq!(chat.wait().unwrap().code(), Some(130));
}

/// The shell itself asks, as `docs/writing-tools.md` sets it up.
#[cfg(unix)]
#[test]
fn b18_the_shell_completes_tools_their_arguments_and_the_values_of_these() {
    const SCRIPT: &str = r#"
        source <(COMPLETE=bash toolrack)
        function=$(complete -p toolrack | sed 's/.* -F \([^ ]*\) .*/\1/')
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        "$function" toolrack "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let program = Path::new(env!("CARGO_BIN_EXE_toolrack"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let folder = tempfile::tempdir().unwrap();
    for (line, completed) in [
        ("call calc", "calculate"),
        ("call file_manager.c", "file_manager.create_document"),
        ("call calculate --ex", "--expression"),
        ("call current_time --time", "--time-zone"),
        ("call learning --category fact", "factual"),
    ] {
        let mut shell = Command::new("bash");
        shell.args(["--norc", "-c", SCRIPT, "-", "toolrack"]).args(line.split(' '));
        let output = shell.env("PATH", &path).current_dir(folder.path()).output().unwrap();
        let words = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(words.trim(), completed, "{line}: {output:?}");
    }
}
