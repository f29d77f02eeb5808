use super::*;

fn target() -> Target {
    Target {
        url: "http://127.0.0.1:7331".into(),
        key: "se'cret".into(),
        model: "org/qwen \"3\"".into(),
        folder: "/data".into(),
    }
}

fn setup(name: &str) -> (&'static Agent, Setup) {
    let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
    (agent, (agent.setup)(&target()))
}

#[test]
fn b13_launch_reports_everything_but_the_key() {
    for agent in &AGENTS {
        let (target, setup) = (target(), (agent.setup)(&target()));
        let report = report(agent, &setup, &target);
        assert!(report.contains("127.0.0.1:7331") && report.contains("(the key)"), "{report}");
        assert!(!report.contains(&target.key), "{report}");
        assert!(setup.set.iter().any(|(_, value)| value.text(&target) == target.key), "{}", agent.name);
    }
}

#[test]
fn b13_launch_quotes_names_of_models() {
    let (_, codex) = setup("codex");
    assert_eq!(codex.arguments[1], r#"model="org/qwen \"3\"""#);
    for argument in codex.arguments.iter().skip(1).step_by(2) {
        let (_, value) = argument.split_once('=').unwrap();
        toml::from_str::<toml::Table>(&format!("value = {value}")).unwrap();
    }
    let (_, opencode) = setup("opencode");
    let configuration: Json = serde_json::from_str(opencode.set[0].1.text(&target())).unwrap();
    assert_eq!(configuration["model"], r#"toolrack/org/qwen "3""#);
    assert!(configuration["provider"]["toolrack"]["models"].get(r#"org/qwen "3""#).is_some());
}

#[test]
fn b13_launch_leaves_titles_without_tools() {
    let (_, claude) = setup("claude");
    let small = claude.set.iter().find(|(name, _)| *name == "ANTHROPIC_DEFAULT_HAIKU_MODEL").unwrap();
    assert_eq!(small.1.text(&target()), r#"org/qwen "3":plain"#);
    let plain = Target { model: "qwen3:plain".into(), ..target() };
    let opencode = AGENTS.iter().find(|agent| agent.name == "opencode").unwrap();
    let setup = (opencode.setup)(&plain);
    let configuration: Json = serde_json::from_str(setup.set[0].1.text(&plain)).unwrap();
    assert_eq!(configuration["small_model"], "toolrack/qwen3:plain");
}

/// A shell that runs the printed lines sets what the launched program would see.
#[cfg(unix)]
#[test]
fn b13_launch_prints_lines_for_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target { folder: folder.path().join("with 'quotes'"), ..target() };
    let agent = AGENTS.iter().find(|agent| agent.name == "gemini").unwrap();
    let setup = (agent.setup)(&target);
    let lines = shell(agent, &setup, &target, &["-p".into(), "say 'hi' $HOME".into()]);
    let script =
        format!("gemini() {{ printf '%s|' \"$GEMINI_API_KEY\" \"$GEMINI_MODEL\" \"$@\"; }}\n{lines}");
    let output = Command::new("sh").args(["-euc", &script]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "se'cret|org/qwen \"3\"|-p|say 'hi' $HOME|",
        "{lines}"
    );
    let (file, content) = setup.file.unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), content);
}

#[test]
fn b13_launch_leaves_a_file_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/settings.json");
    create(&file, "first").unwrap();
    create(&file, "second").unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "first");
}
