use super::{store::Place, *};
use crate::{turn::ToolStyle, upstream::DEMO};

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    engine: String,
}

#[test]
fn a_file_is_read_and_flags_win() {
    let text = "model = \"a\"\nlisten = \"127.0.0.1:1\"\n\n[user]\nlevel = \"admin\"\n\n[search]\nengine = \"x\"\n\n[limits]\nmax_rounds = 3\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let flags = Flags { config: Some(file.path().into()), model: Some("b".into()), ..Flags::default() };
    let settings = Settings::load(&flags, &["search"]).unwrap();
    assert_eq!(settings.model.as_deref(), Some("b"));
    assert_eq!(settings.listen.port(), 1);
    assert_eq!(settings.caller().level, Permission::Admin);
    assert_eq!(settings.limits.max_rounds, 3);
    assert_eq!(settings.host_table::<Search>("search"), Ok(Search { engine: "x".into() }));
    assert_eq!(settings.host_table::<Search>("other"), Ok(Search::default()));
}

#[test]
fn what_is_no_configuration_file_is_not_read_for_ever() {
    let load = |file: &Path| Settings::load(&Flags { config: Some(file.into()), ..Flags::default() }, &[]);
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len(5 << 20).unwrap();
    let error = load(large.path()).unwrap_err();
    assert!(error.contains(&large.path().display().to_string()) && error.contains("4 MiB"), "{error}");
    #[cfg(unix)]
    assert!(load(Path::new("/dev/zero")).unwrap_err().contains("4 MiB"));
    let error = load(Path::new("gone.toml")).unwrap_err();
    assert!(error.starts_with("gone.toml cannot be read: "), "{error}");
}

#[test]
fn a_fault_names_its_line() {
    let error =
        Settings::from_toml("[search]\nengine = 1\n\n[user]\nlevl = \"admin\"\n", &["search"]).unwrap_err();
    assert!(error.contains("line 5") && error.contains("levl") && error.contains("level"), "{error}");
    let error = Settings::from_toml("[user]\nlevel = \"king\"", &[]).unwrap_err();
    assert!(error.contains("guest"), "{error}");
    let error = Settings::from_toml("search.engine = 1\nmodl = 2", &["search"]).unwrap_err();
    assert!(error.contains("line 2") && error.contains("modl"), "{error}");
    let error =
        Settings::from_toml("[models.m]\ndialect = \"hermes\"\n[models.n]\ndialect = \"hermed\"", &[]);
    let error = error.unwrap_err();
    assert!(
        error.contains("line 4") && error.contains("`hermed`") && error.contains("qwen3_coder"),
        "{error}"
    );
    let error = Settings::from_toml("[models.m]\ndialekt = \"hermes\"", &[]).unwrap_err();
    assert!(error.contains("line 2") && error.contains("dialekt") && error.contains("`dialect`"), "{error}");
    let error = Settings::from_toml("[models.m]", &[]).unwrap_err();
    assert!(error.contains("line 1") && error.contains("`dialect`"), "{error}");
    let error = Settings::from_toml("[models.m]\ncontext = 0", &[]).unwrap_err();
    assert!(error.contains("line 2") && error.contains("nonzero"), "{error}");
    let error = Settings::from_toml("[models.m]\ntool_style = \"text\"", &[]).unwrap_err();
    assert!(error.contains("line 2") && error.contains("`prompt`"), "{error}");
    let error = Settings::from_toml("[models.\"a*b\"]\ndialect = \"hermes\"", &[]).unwrap_err();
    assert!(error.contains("`a*b`"), "{error}");
    let error = Settings::from_toml("upstream = ", &[]).unwrap_err();
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn the_reading_is_handed_on() {
    let text = "[chat.parsing]\nonly_closed = true\ntrim_values = true\n";
    let settings = Settings::from_toml(text, &[]).unwrap().chat_settings();
    assert_eq!(Ok(settings.parsing), "only_closed,trim_values".parse());
    assert_eq!(Settings::default().chat_settings().parsing, dialect::ParseOptions::default());
    let error = Settings::from_toml("[chat.parsing]\nonly_close = true", &[]).unwrap_err();
    assert!(error.contains("line 2") && error.contains("`only_closed`"), "{error}");
    let error = Settings::from_toml("[chat.parsing]\nonly_closed = \"yes\"", &[]).unwrap_err();
    assert!(error.contains("line 2") && error.contains("boolean"), "{error}");
}

#[test]
fn a_model_has_its_own_dialect() {
    let text = "[chat]\ndialect = \"hermes\"\n[models.\"gemma-4*\"]\ndialect = \"gemma4\"\n[models.phi]\npictures = false";
    let chat = Settings::from_toml(text, &[]).unwrap().chat_settings();
    assert_eq!((chat.dialect_of("gemma-4-9b"), chat.dialect_of("other")), (Some("gemma4"), Some("hermes")));
}

#[test]
fn b16_a_model_has_its_own_tool_style() {
    let text = "[chat]\ntool_style = \"native\"\n[models.\"m*\"]\ndialect = \"hermes\"\n[models.m1]\ntool_style = \"prompt\"";
    let chat = Settings::from_toml(text, &[]).unwrap().chat_settings();
    assert_eq!((chat.dialect_of("m1"), chat.tool_style_of("m1")), (Some("hermes"), ToolStyle::Prompt));
    assert_eq!((chat.dialect_of("m2"), chat.tool_style_of("m2")), (Some("hermes"), ToolStyle::Native));
}

#[test]
fn an_unknown_dialect_names_the_known_ones() {
    let settings =
        Settings { chat: Chat { dialect: Some("x".into()), ..Chat::default() }, ..Settings::default() };
    assert!(settings.check().unwrap_err().contains("hermes"));
}

#[test]
fn n11_origins_of_the_file_reach_the_server() {
    let text = "allowed_origins = [\"http://localhost:3000\", \"vscode-webview://*\", \"null\"]";
    let settings = load(text, Flags::default()).unwrap();
    let access = settings.server_settings(Arc::new(registry_core::store::MemoryStore::default())).access;
    let wanted =
        ["http://localhost:3000", "vscode-webview://*", "null"].map(|origin| origin.parse().unwrap());
    assert_eq!(access.allowed_origins, wanted);
    assert!(Settings::default().allowed_origins.is_empty());
}

/// The settings of a file with this text and of these flags.
fn load(text: &str, flags: Flags) -> Result<Settings, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Settings::load(&Flags { config: Some(file.path().into()), ..flags }, &[])
}

#[test]
fn what_is_empty_is_not_set() {
    let empty = || Flags {
        config: None,
        listen: Some(String::new()),
        upstream: Some(String::new()),
        upstream_api_key: Some(Secret(String::new())),
        model: Some(String::new()),
        data_dir: Some(PathBuf::new()),
        api_key: Some(Secret(String::new())),
        by_variable: Vec::new(),
    };
    let text = "listen = \"127.0.0.1:1\"\nupstream = \"demo\"\nupstream_api_key = \"u\"\nmodel = \"m\"\n\
                data_dir = \"d\"\napi_key = \"k\"";
    let settings = load(text, empty()).unwrap();
    assert_eq!((settings.listen.port(), settings.upstream.as_deref()), (1, Some("demo")));
    assert_eq!((settings.model.as_deref(), settings.data_dir), (Some("m"), PathBuf::from("d")));
    assert_eq!((settings.api_key.unwrap().0, settings.upstream_api_key.unwrap().0), ("k".into(), "u".into()));
    let settings = load("upstream = \"\"\nmodel = \"\"\napi_key = \"\"", empty()).unwrap();
    assert!(settings.upstream.is_none() && settings.model.is_none() && settings.api_key.is_none());
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_key() {
    for (text, reported) in [
        ("[user]\nid = \"\"", "user.id: it has to be"),
        ("[user]\nid = \"a\\u0000\"", "without control characters"),
        ("[gate]\nurl = \"ftp://a\"", "gate.url: a gate cannot be reached by ftp"),
        ("[gate]\nurl = \"gate\"", "gate.url: this is not the URL"),
        ("[gate]\nurl = \"http://a\"\nname = \"user:ada\"", "gate.name: "),
        ("[gate]\nurl = \"http://a\"\nname = \"\"", "gate.name: "),
        ("[gate]\nurl = \"http://a\"\nname = \"person\"", "gate.name: \"person\" cannot be its name"),
        ("[gate]\nurl = \"http://a\"\nname = \"timeout\"", "gate.name: \"timeout\" cannot be its name"),
        ("[gate]\nurl = \"http://a\"\nsecret = \"x\"", "gate.secret: "),
        ("[gate]\nurl = \"http://a\"\nsecret = \"x\"\nsecret_env = \"Y\"", "leave one of them out"),
        ("[gate]\nurl = \"http://a\"\nfail_closed = true", "`fails_closed`"),
        ("[gate]\nfails_closed = true", "`url`"),
        ("[[webhooks]]\nurl = \"http://a\"", "webhooks.secret: it is missing"),
        ("[[webhooks]]\nurl = \"http://a\"\nsecret = \"x\"", "webhooks.secret: "),
        ("[[webhooks]]\nurl = \"file:///a\"\nsecret_env = \"X\"", "webhooks.url: "),
        ("[[webhooks]]\nurl = \"http://a\"\nsecret_env = \"X\"\ntenant = \"\"", "webhooks.tenant: "),
        ("[limits]\nmax_rounds = 0", "limits.max_rounds: 0"),
        ("[limits]\nmax_calls = 0", "limits.max_calls: 0"),
        ("[limits]\nmax_identical_calls = 0", "limits.max_identical_calls: 0"),
        ("[limits]\nmax_seconds = 0", "limits.max_seconds: 0"),
        ("[limits]\nidle_seconds = 0", "limits.idle_seconds: 0"),
        ("[limits]\nmax_picture_edge = 10", "limits.max_picture_edge: 10"),
        ("[chat]\ndialect = \"x\"", "chat.dialect"),
        ("upstream = \"localhost:8080\"", "upstream: "),
        ("upstream = \"ftp://a/v1\"", "not an HTTP address"),
        ("upstream = \"http://a:b@c/v1\"", "TOOLRACK_UPSTREAM_API_KEY"),
        ("upstream = \"http://c/v1?key=x\"", "no base address has"),
        ("listen = \"7331\"", "127.0.0.1:7331"),
        ("allowed_hosts = [\"http://rack.lan\"]", "allowed_hosts"),
        ("allowed_origins = [\"*\"]", "`*` is not an origin"),
        ("allowed_origins = [\"http://localhost:3000/chat\"]", "allowed_origins"),
    ] {
        let error = load(text, Flags::default()).unwrap_err();
        assert!(error.contains(reported) && error.contains(": ") && error.contains("tmp"), "{text}: {error}");
    }
    let flags = Flags { upstream: Some("8080".into()), ..Flags::default() };
    assert!(load("", flags).unwrap_err().starts_with("--upstream: "));
}

#[test]
fn a_secret_in_the_environment_is_asked_for_when_it_is_needed() {
    const UNSET: &str = "TOOLRACK_TEST_SECRET_THAT_NOBODY_SETS";
    let text = format!(
        "[gate]\nurl = \"http://a\"\nsecret_env = \"{UNSET}\"\n[[webhooks]]\nurl = \"http://a\"\nsecret_env = \"{UNSET}\""
    );
    let settings = load(&text, Flags::default()).unwrap();
    for fault in [
        settings.gate.unwrap().gate().map(drop).unwrap_err(),
        settings.webhooks[0].endpoint().map(drop).unwrap_err(),
    ] {
        assert!(fault.contains("secret_env") && fault.contains(UNSET), "{fault}");
    }
}

#[test]
fn l5_a_webhook_has_one_secret() {
    let entry = |url: &str, more: &str| format!("[[webhooks]]\nurl = \"{url}\"\n{more}\n");
    let (one, other) = ("secret_env = \"ONE\"", "secret_env = \"OTHER\"");
    let written = format!("secret = \"{}\"", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    for (first, second, third) in [
        (entry("http://a", one), entry("http://b", other), entry("http://a/", other)),
        (entry("http://a/x", one), entry("http://b", other), entry("HTTP://A:80/x", &written)),
        (
            entry("http://a", one),
            entry("http://b", other),
            entry("http://a", &format!("tenant = \"*\"\n{other}")),
        ),
    ] {
        let error = load(&format!("model = \"m\"\n{first}{second}{third}"), Flags::default()).unwrap_err();
        let reported = ["tmp", "line 9", "line 3", "webhooks.url", "secret"];
        assert!(reported.iter().all(|reported| error.contains(reported)), "{error}");
        assert!(!error.contains("whsec_"), "{error}");
    }
    let tenants = entry("http://a", one) + &entry("http://a", &format!("tenant = \"acme\"\n{one}"));
    assert_eq!(load(&tenants, Flags::default()).unwrap().webhooks.len(), 2);
    let inline =
        "webhooks = [{url = \"http://a\", secret_env = \"X\"},\n {url = \"http://a\", secret_env = \"Y\"}]";
    let error = load(inline, Flags::default()).unwrap_err();
    assert!(error.contains("line 2") && error.contains("line 1"), "{error}");
}

#[test]
fn m12_modules_are_read_from_the_top_of_the_file() {
    let text = "slow_modules = \"garmin, x\"\ntool_execution_timeout = 90\ndefault_guest_modules = [\"files\"]\n\
        breaker = { failures = 2 }\n[user]\nlevel = \"guest\"\n[module_services]\ngarmin = \"http://garmin:8000\"\n\
        files = { url = \"http://files\", pin = true }\n";
    let settings = Settings::from_toml(text, &[]).unwrap();
    assert_eq!(settings.check(), Ok(()));
    let modules = &settings.modules;
    assert_eq!(modules.module_services.keys().collect::<Vec<_>>(), ["files", "garmin"]);
    assert_eq!((modules.tool_execution_timeout.as_secs(), modules.breaker.failures), (90, 2));
    assert_eq!(settings.module_name, "toolrack");
    let modules_of = |caller: Caller| caller.allowed_modules.map(Vec::from_iter);
    assert_eq!(modules_of(settings.caller()), Some(vec!["files".to_owned()]));
    assert_eq!(modules_of(settings.caller_at(Permission::User)), None);
    let guest = Settings::default().caller_at(Permission::Guest);
    assert!(guest.reads_only);
    assert_eq!(modules_of(guest), Some(vec!["local".to_owned(), "research".to_owned()]));
}

#[test]
fn m12_a_wrong_module_is_told_with_its_line_or_name() {
    for (text, reported) in [
        ("model = \"m\"\n[module_services]\na = 1", &["line 3", "a URL, or a table"][..]),
        ("model = \"m\"\n[module_services.a]\nurl = \"http://a\"\npins = true", &["line 4", "pins", "`pin`"]),
        ("model = \"m\"\nmodule_timeout = 0", &["line 2", "greater than 0"]),
        ("breaker = { failures = -1 }", &["line 1"]),
        ("slow_module = [\"a\"]", &["line 1", "slow_module"]),
    ] {
        let error = Settings::from_toml(text, &[]).unwrap_err();
        assert!(reported.iter().all(|reported| error.contains(reported)), "{text}: {error}");
    }
    for (text, reported) in [
        ("[module_services]\n\"a.b\" = \"http://a\"", "module_services.a.b"),
        ("[module_services]\na = \"research:8000\"", "module_services.a"),
        ("module_name = \"a.b\"", "module_name"),
        ("[module_services]\ntoolrack = \"http://a\"", "`module_name`"),
    ] {
        let error = Settings::from_toml(text, &[]).unwrap().check().unwrap_err();
        assert!(error.contains(reported), "{text}: {error}");
    }
}

#[test]
fn the_instructions_for_mcp_clients_have_so_many_bytes() {
    let checked = |length| {
        let text = format!("[mcp]\ninstructions = \"{}\"", "x".repeat(length));
        Settings::from_toml(&text, &[]).unwrap().check()
    };
    assert_eq!(checked(4096), Ok(()));
    let error = checked(4097).unwrap_err();
    assert!(error.starts_with("mcp.instructions: it has 4097 bytes; write at most 4096"), "{error}");
}

#[test]
fn p6_the_file_of_the_documents_is_beside_the_store_or_named() {
    let postgres = "[store]\nurl = \"postgres://u@h/d\"\n";
    for (text, place) in [
        ("data_dir = \"d\"", Place::File("d/documents.db".into())),
        ("data_dir = \"d\"\n[documents]\nfile = \"\"", Place::File("d/documents.db".into())),
        ("[documents]\nfile = \"e.db\"", Place::File("e.db".into())),
        (postgres, Place::Postgres("postgres://u@h/d")),
        (&format!("{postgres}[documents]\nfile = \"e.db\""), Place::File("e.db".into())),
    ] {
        assert_eq!(load(text, Flags::default()).unwrap().document_place(), place, "{text}");
    }
    let bad = load("[store]\nurl = \"postgres://u:hush@[h/d\"", Flags::default()).unwrap();
    let error = bad.documents().unwrap_err();
    assert!(error.starts_with("store.url: ") && !error.contains("hush"), "{error}");
    let extract = |text: &str| load(text, Flags::default()).unwrap().documents.extract;
    assert!(!extract("") && extract("[documents]\nextract = true"));
    let error = load("[documents]\nfolder = \"x\"", Flags::default()).unwrap_err();
    assert!(error.contains("line 2") && error.contains("`file`"), "{error}");
}

#[test]
fn p6_who_may_add_documents_over_http_is_set() {
    let upload = |text: &str| load(text, Flags::default()).map(|settings| settings.documents.upload);
    assert_eq!(upload("").unwrap(), crate::server::Upload::User);
    assert_eq!(upload("[documents]\nupload = \"admin\"").unwrap(), crate::server::Upload::Admin);
    assert_eq!(upload("[documents]\nupload = \"off\"").unwrap(), crate::server::Upload::Off);
    let error = upload("[documents]\nupload = \"everybody\"").unwrap_err();
    assert!(error.contains("everybody") && error.contains("`admin`"), "{error}");
}

#[tokio::test]
async fn p6_tools_that_ask_the_model_are_off_where_there_is_only_the_demo() {
    let missing = |settings: &Settings| settings.language_model().missing();
    let (mut named, found) = (Settings::default(), Settings::default());
    assert_eq!(missing(&found), None, "nobody has looked yet");
    found.found_upstream.set(Upstream::demo()).unwrap();
    let reported = missing(&found).unwrap();
    assert!(reported.contains("start a model server, or name one with --upstream"), "{reported}");
    named.upstream = Some(DEMO.to_owned());
    assert_eq!(missing(&named), Some(reported));
    named.upstream = Some("http://127.0.0.1:1/v1".to_owned());
    assert!(!named.upstream().await.unwrap().is_demo());
    assert_eq!(missing(&named), None);
}

#[test]
fn b13_what_is_kept_of_conversations_can_be_set_and_switched_off() {
    use registry_core::store::ConversationLimits;

    assert_eq!(Settings::default().conversations.limits(), ConversationLimits::default());
    let text = "[conversations]\nretention_days = 0\nmax_conversations = 7\nmax_mebibytes = 3";
    let limits = load(text, Flags::default()).unwrap().conversations.limits();
    assert!(limits.retention.is_zero());
    assert_eq!((limits.max_user_conversations, limits.max_user_bytes), (7, 3 << 20));
    let error = load("[conversations]\nmax_mebibytes = 0", Flags::default()).unwrap_err();
    assert!(error.contains("conversations.max_mebibytes") && error.contains("retention_days = 0"), "{error}");

    let text = "[conversations]\ntranscripts = false\nmax_transcript_mebibytes = 5\nmax_total_transcript_mebibytes = 9";
    let transcripts = load(text, Flags::default()).unwrap().conversations.limits().transcripts;
    assert_eq!(
        (transcripts.are_kept, transcripts.max_user_bytes, transcripts.max_total_bytes),
        (false, 5 << 20, 9 << 20)
    );
    let error = load("[conversations]\nmax_transcript_mebibytes = 0", Flags::default()).unwrap_err();
    assert!(error.contains("max_transcript_mebibytes") && error.contains("transcripts = false"), "{error}");
}

#[test]
fn b14_a_model_server_has_a_table_of_its_own() {
    let text =
        "[upstream]\nurl = \"http://127.0.0.1:11434\"\nnum_ctx = 32768\nkeep_alive = \"30m\"\nparallel = 4";
    let settings = load(text, Flags::default()).unwrap();
    let table = &settings.upstreams["default"];
    assert_eq!((table.num_ctx, table.keep_alive.as_deref()), (Some(32768), Some("30m")));
    assert_eq!(table.parallel.map(u16::from), Some(4));
    assert_eq!(settings.configured_upstream().unwrap().unwrap().address(), "http://127.0.0.1:11434");
    let flags = Flags { upstream: Some("http://127.0.0.1:1/v1".into()), ..Flags::default() };
    let settings = load(text, flags).unwrap();
    assert_eq!(settings.configured_upstream().unwrap().unwrap().address(), "http://127.0.0.1:1/v1");
    for (text, reported) in [
        ("[upstream]\nnum_ctx = 1", "missing field `url`"),
        ("[upstream]\nurl = \"demo\"", "upstreams.default.url: the demo is no server"),
        ("[upstream]\nurl = \"here\"", "upstreams.default.url: "),
        ("[upstreams.\"a b\"]\nurl = \"http://a/v1\"", "`a b` is not a name"),
        ("[upstream]\nurl = \"http://a\"\nnum_ctx = 0", "write a number of tokens"),
        ("[upstream]\nurl = \"http://a\"\nparallel = 0", "a nonzero u16"),
        ("[upstream]\nurl = \"http://a\"\nnum_ctx = 8\nmax_num_ctx = 9", "leave one of them out"),
        ("[upstream]\nurl = \"http://a\"\nmax_num_ctx = 8\napi = \"openai\"", "need `api = \"ollama\"`"),
        ("[upstream]\nurl = \"http://a\"\nnum_ctx = 8\napi = \"openai\"", "need `api = \"ollama\"`"),
        ("[upstream]\nurl = \"http://a\"\napi = \"gemini\"", "`openai` or `ollama`"),
        ("[upstream]\nurl = \"http://a\"\napi_key = \"k\"\napi_key_env = \"K\"", "leave one of them out"),
        (
            "[upstream]\nurl = \"http://a\"\nfallback = \"b\"",
            "default.fallback: there is no other upstream `b`",
        ),
        ("[upstream]\nurl = \"http://a\"\nfallback_model = \"m\"", "there is no `fallback`"),
        ("[upstream]\nurl = \"http://a\"\nmodels = [\"a*b\"]", "`a*b` is not the name of a model"),
        ("upstream = \"http://a\"\n[upstreams.b]\nurl = \"http://b\"", "write each server as a table"),
    ] {
        let error = load(text, Flags::default()).unwrap_err();
        assert!(error.contains(reported), "{text}: {error}");
    }
    let unset =
        load("[upstream]\nurl = \"http://a\"\napi_key_env = \"TOOLRACK_NEVER_SET\"", Flags::default());
    let error = unset.unwrap().configured_upstream().unwrap_err();
    assert!(error.contains("TOOLRACK_NEVER_SET"), "{error}");
}
