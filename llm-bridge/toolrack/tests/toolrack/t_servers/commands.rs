//! The commands beside a server: requirements L3, L5, M6, T5.

use reqwest::StatusCode;
use serde_json::Value;

use super::program::{Rack, client, mock};

/// What a command that fails says.
#[track_caller]
fn refused(rack: &Rack, arguments: &[&str]) -> String {
    let output = rack.run(arguments);
    assert!(!output.status.success(), "toolrack {arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn names(rack: &Rack, arguments: &[&str]) -> Vec<String> {
    let listed = rack.done(&[&["tools", "list", "--json"], arguments].concat());
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    listed.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn l5_tools_are_found_at_the_command_line() {
    let tools = mock("mail.send", "tags = [\"post\", \"net\"]")
        + &mock("mail.read", "tags = [\"post\"]")
        + &mock("all.sender", "tags = [\"post\"]\npermission = \"admin\"")
        + "[user]\nlevel = \"user\"\n";
    let rack = Rack::new("", &tools);
    assert_eq!(names(&rack, &["--search", "send"]), ["mail.send"]);
    assert_eq!(names(&rack, &["--search", "send", "--level", "admin"]), ["mail.send", "all.sender"]);
    assert_eq!(names(&rack, &["--tag", "post", "--tag", "NET", "--level", "admin"]), ["mail.send"]);
    assert_eq!(names(&rack, &["--tag", "post", "--module", "mail"]), ["mail.read", "mail.send"]);
    assert_eq!(names(&rack, &["--search", "nothing like it"]), [""; 0]);
    assert_eq!(names(&rack, &["--search", " ", "--tag", ""]), names(&rack, &[]));
    let definitions = rack.done(&["tools", "list", "--format", "openai", "--tag", "post"]);
    let definitions: Vec<Value> = serde_json::from_str(&definitions).unwrap();
    assert_eq!(definitions.len(), 2, "{definitions:?}");
}

#[test]
fn u5_the_audit_has_who_made_a_change_and_not_who_the_environment_says() {
    let rack =
        Rack::new("", "").with_variable("USER", "somebody-else").with_variable("LOGNAME", "somebody-else");
    rack.done(&["user", "add", "ada"]);
    let records = rack.export(&["--tool", "toolrack user add"]);
    assert_eq!(records.len(), 2);
    for record in records {
        let by = record["user"].as_str().unwrap();
        assert!(!by.is_empty() && by != "somebody-else", "{record}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m9_a_key_has_a_name_and_a_last_use() {
    let rack = Rack::new("", &mock("count.free", ""));
    rack.done(&["user", "add", "ada"]);
    let (id, key) = rack.key("ada", &["--name", "laptop"]);
    let said = refused(&rack, &["key", "create", "ada", "--name", "lap\ntop"]);
    assert!(said.contains("the name of a key has to be"), "{said}");
    let row = || {
        let listed = rack.done(&["key", "list"]);
        listed.lines().find(|row| row.contains(&id)).unwrap().to_owned()
    };
    assert!(row().contains("laptop") && row().contains("never"), "{}", row());
    let (server, client) = (rack.serve(), client());
    assert_eq!(server.call(&client, &key, "count.free").await.status(), StatusCode::OK);
    // It waits for what is noted beside the requests.
    server.end();
    assert!(!row().contains("never"), "{}", row());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l5_a_command_is_about_one_tenant() {
    let rack = Rack::new("", &mock("count.free", ""));
    let acme = ["--tenant", "acme"];
    rack.done(&[&["user", "add", "ada"][..], &acme].concat());
    rack.done(&["user", "add", "ada"]);
    let theirs = rack.done(&[&["key", "create", "ada"][..], &acme].concat()).trim().to_owned();
    let (_, ours) = rack.key("ada", &["--days", "30"]);
    assert!(!rack.run(&["key", "create", "ada", "--days", "0"]).status.success());
    let in_30_days = (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * 30)).to_string();
    let listed = rack.done(&["key", "list"]);
    assert!(listed.contains(&in_30_days[..10]), "{listed}");
    let (server, client) = (rack.serve(), client());
    assert_eq!(server.call(&client, &theirs, "count.free").await.status(), StatusCode::OK);
    rack.done(&[&["tools", "disable", "count.free"][..], &acme].concat());

    let enabled = |more: &[&str]| {
        let listed = rack.done(&[&["tools", "list", "--json", "--module", "count"], more].concat());
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        listed[0]["enabled"].as_bool().unwrap()
    };
    assert_eq!((enabled(&acme), enabled(&[])), (false, true));
    assert!(!rack.run(&[&["call", "count.free"][..], &acme].concat()).status.success());
    rack.done(&["call", "count.free"]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let answer: Value = server.call(&client, &theirs, "count.free").await.json().await.unwrap();
    assert!(answer["error"].as_str().unwrap().contains("switched off"), "{answer}");
    assert_eq!(server.call(&client, &ours, "count.free").await.status(), StatusCode::OK);
    rack.done(&[&["tools", "enable", "count.free"][..], &acme].concat());
    rack.done(&[&["call", "count.free"][..], &acme].concat());
    assert!(enabled(&acme));
    // How often they may call it is theirs too; what is not named is as the tool has it.
    let limit = |options: &[&str]| {
        let output = rack.run(&[&["tools", "limit", "count.free"][..], options, &acme].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let said = limit(&["--daily", "1"]);
    assert!(said.contains("users may call count.free once a day"), "{said}");
    let makes = |more: &[&str]| rack.run(&[&["call", "count.free"][..], more].concat()).status.success();
    assert_eq!((makes(&acme), makes(&acme), makes(&[]), makes(&[])), (true, false, true, true));
    let said = limit(&[]);
    assert!(said.contains("as often as they like, as the tool has it"), "{said}");
    assert!(makes(&acme));

    let origins =
        |more: &[&str]| rack.export(&[&["--only", "success", "--tool", "count.free"], more].concat()).len();
    assert_eq!((origins(&acme), origins(&[])), (4, 4));
    for command in [&["tools", "list"][..], &["call", "count.free"], &["user", "list"], &["audit"]] {
        for wrong in ["", "*", "a\nb"] {
            let reported = refused(&rack, &[command, &["--tenant", wrong]].concat());
            assert!(reported.contains("--tenant"), "{command:?}: {reported}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_personas_are_changed_and_a_user_removed() {
    let rack = Rack::new("", &(mock("count.free", "") + &mock("mail.send", "")));
    rack.done(&["persona", "add", "counter", "--modules", "count"]);
    rack.done(&["persona", "add", "writer", "--modules", "mail"]);
    rack.done(&["user", "add", "ada", "--persona", "counter"]);
    let ((id, ada), server, client) = (rack.key("ada", &[]), rack.serve(), client());
    let pause = || tokio::time::sleep(std::time::Duration::from_secs(1));
    let may = async |tool: &str| server.call(&client, &ada, tool).await.status() == StatusCode::OK;
    assert_eq!((may("count.free").await, may("mail.send").await), (true, false));
    rack.done(&["persona", "modules", "counter", "mail,local"]);
    pause().await;
    assert_eq!((may("count.free").await, may("mail.send").await), (false, true));
    rack.done(&["user", "persona", "ada", "counter", "--also", "writer"]);
    assert!(rack.done(&["user", "list"]).contains("counter, also writer"));
    for (arguments, reported) in [
        (
            &["persona", "remove", "writer"][..],
            "that of ada; give them another one first, or remove it with --force",
        ),
        (&["persona", "remove", "wirter"], "did you mean `writer`"),
        (&["persona", "add", "writer", "--modules", "mail"], "toolrack persona modules writer"),
        (&["persona", "add", "a,b", "--modules", "mail"], "commas"),
        (&["persona", "add", "new"], "--modules"),
        (&["persona", "modules", "writer", "mail,,count"], "1 to 256 bytes"),
        (&["user", "persona", "ada", "new"], "toolrack persona add new --modules"),
        (&["user", "persona", "ada", "counter", "--also", "wirter"], "did you mean `writer`"),
        (&["user", "persona", "ada"], "<NAME>"),
        (&["user", "persona", "ada", "counter", "--none"], "--none"),
        (&["user", "persona", "ad", "counter"], "did you mean `ada`"),
        (&["user", "persona", "ada", "counter", "--tenant", "acme"], "there is no persona `counter`"),
        (&["user", "remove", "adda"], "did you mean `ada`"),
        (&["user", "remove", "zoe"], "toolrack user add zoe"),
        (&["user", "remove", "ada", "--tenant", "acme"], "there is no user `ada`"),
        (&["user", "add", " "], "1 to 256 bytes"),
        (&["user", "add", "a\nb"], "control characters"),
        (&["user", "add", "bob", "--persona", "new"], "there is no persona `new`"),
        (&["tools", "list", "--persona", "new"], "use `counter` or `writer`, or leave it out"),
    ] {
        let said = refused(&rack, arguments);
        assert!(said.contains(reported), "{arguments:?}: {said}");
    }
    let said = reported(&rack, &["persona", "remove", "counter", "--force"]);
    assert!(said.contains("ada still have it") && said.contains("toolrack user persona USER NAME"), "{said}");
    pause().await;
    assert_eq!((may("count.free").await, may("mail.send").await), (false, false));
    rack.done(&["user", "persona", "ada", "--none"]);
    pause().await;
    assert_eq!((may("count.free").await, may("mail.send").await), (true, true));
    let recorded = rack.export(&["--only", "success", "--tool", "toolrack persona modules"]);
    assert_eq!(
        recorded[0]["arguments"],
        serde_json::json!({"name": "counter", "allowed_modules": ["mail", "local"]})
    );
    assert!(may("count.free").await, "nothing of that has changed a thing");

    rack.done(&["user", "remove", "ada"]);
    pause().await;
    assert_eq!(server.call(&client, &ada, "count.free").await.status(), StatusCode::UNAUTHORIZED);
    assert!(!rack.done(&["user", "list"]).contains("ada"));
    let keys = rack.done(&["key", "list"]);
    assert!(keys.lines().any(|row| row.contains(&id) && !row.trim_end().ends_with(" no")), "{keys}");
    // The name may be given again, and the old key is not the new user's.
    rack.done(&["user", "add", "ada"]);
    assert_eq!(server.call(&client, &ada, "count.free").await.status(), StatusCode::UNAUTHORIZED);
    assert!(refused(&rack, &["user", "remove", "zoe"]).contains("there is no user"));
}

/// What a command that does what it should says beside.
#[track_caller]
fn reported(rack: &Rack, arguments: &[&str]) -> String {
    let output = rack.run(arguments);
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "toolrack {arguments:?}: {reported}");
    reported
}

/// What is worth a word at a check, and no fault.
fn checked(rack: &Rack) -> String {
    String::from_utf8(rack.run(&["tools", "check"]).stderr).unwrap()
}

#[test]
fn l5_a_name_that_nothing_has_is_told() {
    let tools = mock("mail.send", "") + "[module_services]\nfar = \"http://127.0.0.1:1\"\n";
    let rack = Rack::new("", &tools);
    for (modules, warned) in [
        ("mail,local,far", None),
        ("mial", Some("there is no module `mial`; did you mean `mail`?")),
        ("mail,qqqqqqqq", Some("there is no module `qqqqqqqq`")),
    ] {
        let name = format!("of-{}", modules.len());
        let added = reported(&rack, &["persona", "add", &name, "--modules", modules]);
        let changed = reported(&rack, &["persona", "modules", &name, modules]);
        for said in [added, changed] {
            assert_eq!(said.matches("warning: ").count(), usize::from(warned.is_some()), "{said}");
            assert!(warned.is_none_or(|warned| said.contains(warned)), "{said}");
        }
    }
    assert!(
        !reported(&rack, &["user", "add", "ada", "--tenant", "acme"]).contains("warning"),
        "it begins so"
    );
    for command in [
        &["user", "list"][..],
        &["key", "list"],
        &["audit"],
        &["audit", "verify"],
        &["tools", "list"],
        &["call", "mail.send"],
        &["tools", "disable", "mail.send"],
    ] {
        let wrong = reported(&rack, &[command, &["--tenant", "amce"]].concat());
        assert!(wrong.contains("there is no tenant `amce`; did you mean `acme`?"), "{command:?}: {wrong}");
        let right = reported(&rack, &[command, &["--tenant", "acme"]].concat());
        assert!(!right.contains("no tenant `acme`;"), "{command:?}: {right}");
        assert!(!reported(&rack, command).contains("no tenant"), "{command:?}");
    }

    rack.top("deferred_tools = [\"calculat\", \"mail.*\", \"far.thing\", \"mial.*\"]\ndefault_guest_modules = [\"lokal\", \"far\"]");
    let check = checked(&rack);
    let server = rack.serve();
    for warned in [
        "deferred_tools: there is no tool `calculat`; did you mean `calculate`?",
        "deferred_tools: there is no module `mial`; did you mean `mail`?",
        "default_guest_modules: there is no module `lokal`; did you mean `local`?",
    ] {
        assert_eq!((check.matches(warned).count(), server.log().matches(warned).count()), (1, 1), "{check}");
    }
    assert_eq!(check.matches("warning: ").count(), 3, "{check}");
}

#[test]
fn c5_more_tools_than_openai_takes_are_told() {
    let tools =
        |count: usize| (0..count).map(|number| mock(&format!("many.tool_{number}"), "")).collect::<String>();
    let rack = Rack::new("", &tools(130));
    let many = checked(&rack);
    assert!(many.contains("tools go with every request") && many.contains("takes 128"), "{many}");
    let listed = rack.run(&["tools", "list", "--format", "openai"]);
    assert!(String::from_utf8(listed.stderr).unwrap().contains("a request takes 128 tools"));
    rack.write("", &tools(100));
    assert!(!checked(&rack).contains("every request"));
    rack.write("", &tools(130));
    rack.top("deferred_tools = [\"many.*\"]");
    assert!(!checked(&rack).contains("every request"));
}

#[test]
fn t5_a_chain_is_verified_whole() {
    let rack = Rack::new("", &mock("count.free", ""));
    rack.done(&["call", "count.free"]);
    assert_eq!(rack.verified().len(), 1);
    rack.done(&["audit", "verify", "--tenant", "default"]);
    for filter in [
        &["--user", "ada"][..],
        &["--tool", "x"],
        &["--call-id", "x"],
        &["--origin", "http"],
        &["--decision", "approved"],
        &["--since", "2026-03-01T12:00:00Z"],
        &["--until", "2026-03-01T12:00:00Z"],
        &["--only", "intent"],
        &["--limit", "1"],
    ] {
        let said = refused(&rack, &[&["audit", "verify"], filter].concat());
        assert!(said.contains("unexpected argument") && said.contains(filter[0]), "{filter:?}: {said}");
        rack.done(&[&["audit"], filter].concat());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_the_audit_is_searched_by_door_decision_and_call() {
    let rack = Rack::new(
        "",
        &(mock("count.free", "") + &mock("count.gone", "permission = \"guest\"\neffect = \"destructive\"")),
    );
    let (server, client) = (rack.serve(), client());
    for _ in 0..3 {
        assert_eq!(server.call(&client, "none", "count.free").await.status(), StatusCode::OK);
    }
    assert_eq!(server.call(&client, "none", "count.gone").await.status(), StatusCode::ACCEPTED);
    rack.done(&["call", "count.gone", "{\"n\": 1}", "--yes"]);
    assert!(!rack.run(&["call", "count.gone", "{\"n\": 2}"]).status.success());
    rack.done(&["chat", "What is 2 + 3?"]);

    // The built-in model writes its calls as text.
    let dialect = rack.export(&["--origin", "text"])[0]["origin"]["text"].as_str().unwrap().to_owned();
    for (filter, records) in [
        (&["--origin", "http"][..], 7),
        (&["--origin", "http", "--limit", "2"], 2),
        (&["--origin", "http", "--tool", "count.gone"], 1),
        // The call, and the answers to the approvals of both.
        (&["--origin", "command_line", "--only", "success"], 3),
        (&["--origin", "native"], 0),
        (&["--origin", "text"], 2),
        (&["--origin", &dialect], 2),
        (&["--origin", if dialect == "hermes" { "kimi_k2" } else { "hermes" }], 0),
        (&["--origin", "mcp"], 0),
        (&["--origin", "library"], 0),
        (&["--decision", "approved"], 2),
        (&["--decision", "approved", "--only", "intent"], 1),
        (&["--decision", "blocked"], 1),
        (&["--decision", "pending", "--origin", "http"], 1),
        (&["--decision", "pending", "--origin", "command_line"], 0),
        (&["--decision", "unanswered"], 0),
        (&["--call-id", "none"], 0),
    ] {
        let found = rack.export(filter);
        assert_eq!(found.len(), records, "{filter:?}: {found:?}");
        assert_eq!(rack.done(&[&["audit"], filter].concat()).lines().count(), records, "{filter:?}");
    }
    let newest = rack.done(&["audit", "--origin", "http", "--limit", "1"]);
    assert!(newest.contains("count.gone"), "{newest}");
    let reported = refused(&rack, &["audit", "--origin", "htp"]);
    assert!(reported.contains("command_line") && reported.contains("hermes"), "{reported}");
    assert!(refused(&rack, &["audit", "--decision", "maybe"]).contains("unanswered"));
}

#[test]
fn m6_a_chat_in_the_terminal_is_held_under_the_persona_that_it_names() {
    let rack = Rack::new("", &mock("count.free", ""));
    rack.done(&["persona", "add", "counter", "--modules", "count"]);
    rack.done(&["chat", "--persona", "counter", "What is 2 + 3?"]);
    assert!(rack.export(&["--origin", "text"]).is_empty(), "its modules cannot calculate");
    rack.done(&["chat", "What is 2 + 3?"]);
    assert_eq!(rack.export(&["--origin", "text"]).len(), 2);
    assert!(refused(&rack, &["chat", "--persona", "nobody", "Hello"]).contains("nobody"));
}

#[test]
fn u10_the_start_ends_with_the_count_that_the_list_has() {
    let rack = Rack::new("", &mock("count.free", ""));
    let listed = rack.done(&["tools", "list", "--json", "--level", "admin"]);
    let rows: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let ready = rows.iter().filter(|row| row["enabled"] == true).count();
    let all: Vec<Value> = serde_json::from_str(&rack.done(&["tools", "list", "--json"])).unwrap();
    let (off, above) = (rows.len() - ready, all.len() - rows.len());
    let server = rack.serve();
    let counted =
        format!("{ready} tools ready, {off} off, {above} not allowed to user local (admin). Data: /");
    let began = std::time::Instant::now();
    while !server.log().contains(&counted) {
        assert!(began.elapsed().as_secs() < 20, "{counted}: {}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let log = server.log();
    let line = log.lines().find(|line| line.contains(&counted)).unwrap();
    assert!(line.contains("toolrack.db; configuration: toolrack.toml; API key: none"), "{line}");
    assert!(log.find("Chat at").unwrap() < log.find(&counted).unwrap(), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s13_a_registered_tool_survives_a_restart_and_is_seen_by_other_servers() {
    let rack = Rack::new("", &mock("count.free", ""));
    let listed = |name: &str| -> Option<Value> {
        let tools: Vec<Value> = serde_json::from_str(&rack.done(&["tools", "list", "--json"])).unwrap();
        tools.into_iter().find(|tool| tool["name"] == name)
    };
    let spec = |version: &str, input: &str| {
        format!(
            r#"{{"tool_name": "weather_lookup", "version": "{version}", "input_schema": {input}, "output_schema": {{}}}}"#
        )
    };
    rack.file("weather.json", &spec("1.0.0", r#"{"city": "string"}"#));
    rack.done(&["user", "add", "ada"]);
    let ((_, ada), server, client) = (rack.key("ada", &[]), rack.serve(), client());
    assert!(
        reported(&rack, &["tools", "register", "weather.json"]).contains("registered weather_lookup 1.0.0")
    );
    assert!(reported(&rack, &["tools", "register", "weather.json"]).contains("registered already"));
    // Another process has it, and a server that runs.
    assert_eq!(listed("weather_lookup").unwrap()["version"], "1.0.0");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let answer: Value = server.call(&client, &ada, "weather_lookup").await.json().await.unwrap();
    assert!(answer["error"].as_str().unwrap().contains("weather_lookup cannot be used"), "{answer}");
    assert!(reported(&rack, &["tools", "disable", "weather_lookup"]).contains("weather_lookup is off"));

    rack.file("changed.json", &spec("1.0.0", "{}"));
    rack.file("seven.json", &spec("2.0.0", "7"));
    rack.file("null.json", &spec("2.0.0", "null"));
    rack.file("text.json", "weather");
    for (arguments, said) in [
        (&["tools", "register", "changed.json"][..], "give the new one another version"),
        (&["tools", "register", "seven.json"], "an object or a boolean"),
        (&["tools", "register", "null.json"], "an object or a boolean"),
        (&["tools", "register", "text.json"], "text.json: the spec is not understood"),
        (&["tools", "register", "none.json"], "none.json: "),
        (&["tools", "remove", "calculate"], "switch it off instead"),
        (&["tools", "remove", "count.free"], "switch it off instead"),
    ] {
        let told = refused(&rack, arguments);
        assert!(told.contains(said), "{arguments:?}: {told}");
    }
    assert!(reported(&rack, &["tools", "remove", "weather_lookup"]).contains("removed weather_lookup"));
    assert!(listed("weather_lookup").is_none());
    assert!(reported(&rack, &["tools", "remove", "weather_lookup"]).contains("nothing to remove"));
    let recorded = rack.export(&["--only", "success", "--tool", "toolrack tools register"]);
    assert_eq!(recorded[0]["arguments"]["spec"]["tool_name"], "weather_lookup");
}

#[test]
fn u10_only_tools_that_are_on_are_logged_as_loaded() {
    let rack = Rack::new("", "");
    let tools: Vec<Value> = serde_json::from_str(&rack.done(&["tools", "list", "--json"])).unwrap();
    let on: Vec<&str> = tools
        .iter()
        .filter(|tool| tool["enabled"] == true)
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(on.len() < tools.len(), "some are off: {tools:?}");
    let log = rack.serve().log();
    let loaded: Vec<&str> =
        log.lines().filter_map(|line| Some(line.split_once("Loaded tool: ")?.1)).collect();
    assert_eq!(loaded, on, "{log}");
}
