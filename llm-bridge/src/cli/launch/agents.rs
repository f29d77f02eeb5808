//! The coding agents: a row each, with what it takes to point one at a server.

use std::path::PathBuf;

use serde_json::json;

use crate::turn::PLAIN;

/// A coding agent.
#[derive(Debug)]
pub(super) struct Agent {
    /// Its name here, and the program's.
    pub(super) name: &'static str,
    /// How it is installed.
    pub(super) install: &'static str,
    pub(super) setup: fn(&Target) -> Setup,
}

/// What an agent is pointed at.
pub(super) struct Target {
    /// Address of the server, without a slash at its end.
    pub(super) url: String,
    pub(super) key: String,
    pub(super) model: String,
    /// A folder that agents may have for themselves.
    pub(super) folder: PathBuf,
}

impl Target {
    /// The model without the server's tools, for titles and summaries: such a request repeats the user's question, on which a model
    /// may act a second time.
    fn without_tools(&self) -> String {
        match self.model.ends_with(PLAIN) {
            true => self.model.clone(),
            false => format!("{}{PLAIN}", self.model),
        }
    }
}

/// What an agent is started with.
#[derive(Default)]
pub(super) struct Setup {
    /// Variables to set.
    pub(super) set: Vec<(&'static str, Value)>,
    /// Variables to remove, which would lead the agent elsewhere.
    pub(super) remove: &'static [&'static str],
    /// Arguments before the user's.
    pub(super) arguments: Vec<String>,
    /// A file to create if it does not exist.
    pub(super) file: Option<(PathBuf, String)>,
}

/// The value of a variable.
pub(super) enum Value {
    Text(String),
    /// The server's key, which is not shown.
    Key,
}

use Value::Key;

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

pub(super) const AGENTS: [Agent; 5] = [
    Agent { name: "claude", install: "npm install -g @anthropic-ai/claude-code", setup: claude },
    Agent { name: "codex", install: "npm install -g @openai/codex", setup: codex },
    Agent { name: "gemini", install: "npm install -g @google/gemini-cli", setup: gemini },
    Agent { name: "opencode", install: "npm install -g opencode-ai", setup: opencode },
    Agent { name: "qwen", install: "npm install -g @qwen-code/qwen-code", setup: qwen },
];

/// <https://code.claude.com/docs/en/env-vars>
fn claude(target: &Target) -> Setup {
    // It asks for models by size; all of them are this one.
    let models = ["ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL"];
    let mut set = vec![("ANTHROPIC_BASE_URL", text(&target.url)), ("ANTHROPIC_AUTH_TOKEN", Key)];
    set.extend(models.map(|name| (name, text(&target.model))));
    set.push(("ANTHROPIC_DEFAULT_HAIKU_MODEL", text(target.without_tools())));
    // A line that differs in each request would make model servers read the whole prompt again.
    set.push(("CLAUDE_CODE_ATTRIBUTION_HEADER", text("0")));
    Setup {
        set,
        remove: &[
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ],
        ..Setup::default()
    }
}

/// <https://github.com/openai/codex/blob/main/docs/config.md>; a value is TOML, in which a JSON string is one, too.
fn codex(target: &Target) -> Setup {
    let base = json!(format!("{}/v1", target.url));
    let provider = format!(
        r#"{{name="Toolrack",base_url={base},env_key="{KEY_VARIABLE}",wire_api="responses",supports_websockets=false}}"#
    );
    let settings = [
        format!("model={}", json!(target.model)),
        r#"model_provider="toolrack""#.to_owned(),
        format!("model_providers.toolrack={provider}"),
        // Its search runs at OpenAI; the tools of the server are offered without being configured.
        r#"web_search="disabled""#.to_owned(),
    ];
    Setup {
        set: vec![(KEY_VARIABLE, Key)],
        arguments: settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect(),
        ..Setup::default()
    }
}

/// <https://geminicli.com/docs/get-started/configuration>. The sign-in of its settings wins over the environment, so it gets a home
/// with settings of its own.
fn gemini(target: &Target) -> Setup {
    let home = target.folder.join("gemini");
    let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
    Setup {
        set: vec![
            ("GEMINI_CLI_HOME", text(home.to_string_lossy())),
            ("GOOGLE_GEMINI_BASE_URL", text(&target.url)),
            ("GEMINI_API_KEY", Key),
            ("GEMINI_MODEL", text(&target.model)),
        ],
        remove: &["GOOGLE_API_KEY", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"],
        file: Some((home.join(".gemini").join("settings.json"), settings.to_string())),
        ..Setup::default()
    }
}

/// <https://opencode.ai/docs/config>
fn opencode(target: &Target) -> Setup {
    let small = target.without_tools();
    let configuration = json!({
        "model": format!("toolrack/{}", target.model),
        "small_model": format!("toolrack/{small}"),
        "provider": { "toolrack": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Toolrack",
            "options": { "baseURL": format!("{}/v1", target.url), "apiKey": format!("{{env:{KEY_VARIABLE}}}") },
            "models": { target.model.as_str(): { "name": target.model }, small.as_str(): { "name": small } },
        } },
    });
    Setup {
        set: vec![("OPENCODE_CONFIG_CONTENT", text(configuration.to_string())), (KEY_VARIABLE, Key)],
        ..Setup::default()
    }
}

/// <https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings>. Flags win over its settings, in which another
/// provider may be selected.
fn qwen(target: &Target) -> Setup {
    let flags = ["--auth-type", "openai", "--model", &target.model];
    Setup {
        set: vec![
            ("OPENAI_BASE_URL", text(format!("{}/v1", target.url))),
            ("OPENAI_API_KEY", Key),
            ("OPENAI_MODEL", text(&target.model)),
        ],
        arguments: flags.map(str::to_owned).to_vec(),
        ..Setup::default()
    }
}

/// Where agents that have no variable for a key read it.
pub(super) const KEY_VARIABLE: &str = "TOOLRACK_KEY";
