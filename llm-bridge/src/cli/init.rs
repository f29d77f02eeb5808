//! `toolrack init`: a commented configuration file from a few questions.

use std::{
    fs,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use toml::Value;

use super::{
    Flags, Settings, address,
    approve::{Input, input},
    fail,
    out::tell,
    settings::Secret,
    terminal::one_line,
};
use crate::upstream::{DEMO, Upstream};

/// How long a model server may take to list its models.
const LISTS: Duration = Duration::from_secs(5);
/// The answer that leaves the model server open.
const SEARCH: &str = "search";
/// The most models that are offered.
const MAX_MODELS: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Ask nothing: take what the options say, and otherwise the defaults
    #[arg(long, short)]
    yes: bool,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

/// What the file is to say. `None` leaves a setting at its default, as a comment.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    listen: Option<String>,
    api_key: Option<String>,
    upstream: Option<String>,
    upstream_api_key: Option<String>,
    model: Option<String>,
    data_dir: Option<PathBuf>,
}

/// Asks, and writes the file. Options are answers already.
///
/// # Errors
/// When the file is there, an answer is wrong, or the file cannot be written.
pub(super) async fn run(arguments: &Arguments, flags: Flags) -> Result<ExitCode, String> {
    let file = flags.config.clone().filter(|file| !file.as_os_str().is_empty());
    let file = file.unwrap_or_else(|| PathBuf::from(Settings::DEFAULT_FILE));
    let shown = file.display();
    if file.exists() && !arguments.force {
        return Err(format!("{shown} is there; edit it, or replace it with --force"));
    }
    let asks = !arguments.yes;
    if asks && !std::io::stdin().is_terminal() {
        return Err("standard input is no terminal; with --yes nothing is asked".to_owned());
    }
    let mut lines = asks.then(input);
    let Some(answers) = ask(flags, &mut lines).await? else {
        return Ok(fail("no answer; nothing was written"));
    };
    let text = file_text(&answers);
    // What is written can be read: a wrong option is refused here, with its place.
    Settings::check_text(&text, &[])?;
    write(&file, &text, arguments.force).map_err(|error| format!("{shown}: {error}"))?;
    tell(format_args!("Wrote {shown}."));
    if let Some(key) = &answers.api_key {
        tell(format_args!("Clients need this key: {key}"));
    }
    tell("Start the server with `toolrack`, and see what your model can do with `toolrack doctor`.");
    Ok(ExitCode::SUCCESS)
}

/// `None` where the input has ended.
async fn ask(flags: Flags, lines: &mut Option<Input>) -> Result<Option<Answers>, String> {
    let set = |text: Option<String>| text.filter(|text| !text.is_empty());
    let secret = |secret: Option<Secret>| set(secret.map(|secret| secret.as_str().to_owned()));
    let mut answers = Answers {
        listen: set(flags.listen),
        api_key: secret(flags.api_key),
        upstream: set(flags.upstream),
        upstream_api_key: secret(flags.upstream_api_key),
        model: set(flags.model),
        data_dir: flags.data_dir.filter(|folder| !folder.as_os_str().is_empty()),
    };
    if let Some(listen) = &answers.listen {
        address::parse(listen)?;
    }
    if let Some(upstream) = &answers.upstream {
        address::check_upstream(upstream)?;
    } else {
        let found = Upstream::find(answers.upstream_api_key.clone(), LISTS).await;
        let (usual, note) = match found.is_demo() {
            true => (SEARCH.to_owned(), "No model server was found on the usual ports".to_owned()),
            false => (found.address(), format!("{} answers at {}", found.kind(), found.address())),
        };
        tell(one_line(&format!("{note}.")));
        let question =
            "Address of the model server; `search` looks for one at each start, and `demo` is built in";
        let check = |text: &str| if text == SEARCH { Ok(()) } else { address::check_upstream(text) };
        let Some(upstream) = answer(lines, question, &usual, check).await else { return Ok(None) };
        answers.upstream = Some(upstream).filter(|upstream| upstream != SEARCH);
    }
    if answers.model.is_none()
        && lines.is_some()
        && let Some(names) = models(&answers).await
    {
        for (number, name) in (1..).zip(&names) {
            tell(one_line(&format!("  {number}. {name}")));
        }
        let question = "Model for clients that name none: a number or a name; `first` is the server's first";
        let check = |text: &str| match text.parse::<usize>() {
            Ok(number) if !(1..=names.len()).contains(&number) && !names.iter().any(|name| name == text) => {
                Err(format!("there are 1 to {}; write one of these, or a name", names.len()))
            }
            _ => Ok(()),
        };
        let Some(model) = answer(lines, question, "first", check).await else { return Ok(None) };
        let numbered = model.parse::<usize>().ok().and_then(|number| names.get(number.checked_sub(1)?));
        answers.model = Some(numbered.cloned().unwrap_or(model)).filter(|model| model != "first");
    }
    if answers.listen.is_none() && lines.is_some() {
        let question = "Who may use it: programs on this machine only, or others on the network too, with a key (machine/network)";
        let check = |text: &str| match text {
            "machine" | "network" => Ok(()),
            _ => Err("write `machine` or `network`".to_owned()),
        };
        let Some(who) = answer(lines, question, "machine", check).await else { return Ok(None) };
        if who == "network" {
            answers.listen = Some("0.0.0.0:7331".to_owned());
        }
    }
    // Without a key only this machine is listened to.
    let is_open = answers.listen.as_deref().map(address::parse).transpose()?;
    if answers.api_key.is_none() && is_open.is_some_and(|address| !address.ip().is_loopback()) {
        answers.api_key = Some(new_key()?);
    }
    Ok(Some(answers))
}

/// Asks until the answer is right; an empty line is the default, and without a terminal it is taken unasked. `None` where the input has
/// ended.
async fn answer(
    lines: &mut Option<Input>,
    question: &str,
    usual: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Option<String> {
    let Some(lines) = lines else { return Some(usual.to_owned()) };
    loop {
        tell(one_line(&format!("? {question} [{usual}]")));
        let line = lines.next_line().await.ok().flatten()?;
        let said = match line.trim() {
            "" => usual,
            said => said,
        };
        match check(said) {
            Ok(()) => return Some(said.to_owned()),
            Err(fault) => tell(one_line(&fault)),
        }
    }
}

/// The names of the server's models that answer questions, where it lists several.
async fn models(answers: &Answers) -> Option<Vec<String>> {
    let base = answers.upstream.as_deref().filter(|base| *base != DEMO)?;
    let upstream = Upstream::http(base, answers.upstream_api_key.clone(), LISTS).ok()?;
    let listed = tokio::time::timeout(LISTS, upstream.listed()).await.ok()?.ok()?;
    let names = listed.into_iter().filter(|model| !model.embeds).map(|model| model.id);
    Some(names.take(MAX_MODELS).collect::<Vec<_>>()).filter(|names| names.len() > 1)
}

fn new_key() -> Result<String, String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// The file: what was answered, and as comments what else is often set.
fn file_text(answers: &Answers) -> String {
    let line = |key: &str, value: Option<&str>, usual: &str| match value {
        Some(value) => format!("{key} = {}", Value::from(value)),
        None => format!("# {key} = {}", Value::from(usual)),
    };
    let folder = answers.data_dir.as_ref().map(|folder| folder.to_string_lossy());
    let listen = line("listen", answers.listen.as_deref(), "127.0.0.1:7331");
    let api_key = line("api_key", answers.api_key.as_deref(), "a long secret");
    let upstream = line("upstream", answers.upstream.as_deref(), "http://127.0.0.1:8080/v1");
    let upstream_api_key = line("upstream_api_key", answers.upstream_api_key.as_deref(), "a key");
    let model = line("model", answers.model.as_deref(), "qwen3");
    let data_dir = line("data_dir", folder.as_deref(), ".toolrack");
    format!(
        r#"# Settings of Toolrack. Lines that begin with `#` show the default or an example; docs/configuration.md has every setting.

# The address to listen on. On any other than this machine's own, clients need a key.
{listen}

# The key of the user in [user]. Other users get keys of their own: `toolrack user add ada`, `toolrack key create ada`.
{api_key}

# The model server: the base URL of Ollama, llama.cpp, vLLM, SGLang, LM Studio or any other with OpenAI's API; `demo` is built in and no model.
# Without it the usual local ports are tried at each start.
{upstream}
{upstream_api_key}

# The model for clients that name none; without it the server's first.
{model}

# Where everything that lasts is kept, in the folder that Toolrack is started in.
{data_dir}

# The user of requests without a key, and of those with `api_key`: guest, user, admin or owner.
# [user]
# id = "local"
# level = "user"

[guard]
# Calls that cannot be undone wait for a person.
# approve_destructive = true
# The audit log keeps the arguments of calls, not only their hash.
# audit_arguments = false

# An MCP server, whose tools are files.NAME.
# [mcp_servers.files]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]

# Documents are searched by meaning too with a model for embeddings.
# [documents.embeddings]
# model = "nomic-embed-text"

# State for several servers.
# [store]
# url = "postgres://toolrack@localhost/toolrack"
"#
    )
}

/// Writes it for the owner's eyes: it may have keys.
fn write(file: &Path, text: &str, replaces: bool) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    match replaces {
        true => options.create(true).truncate(true),
        // It may have come meanwhile.
        false => options.create_new(true),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    // The mode above is for a new file alone.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u7_what_is_written_can_be_read_with_and_without_its_comments() {
        let answers = Answers {
            listen: Some("0.0.0.0:7331".to_owned()),
            api_key: Some("a \"key\"".to_owned()),
            upstream: Some("http://127.0.0.1:11434/v1".to_owned()),
            upstream_api_key: Some("k".to_owned()),
            model: Some("qwen3".to_owned()),
            data_dir: Some("data\\here".into()),
        };
        for answers in [Answers::default(), answers] {
            let text = file_text(&answers);
            Settings::check_text(&text, &[]).unwrap();
            let table: toml::Table = text.parse().unwrap();
            let said = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
            assert_eq!(said("api_key"), answers.api_key);
            assert_eq!(said("data_dir").map(PathBuf::from), answers.data_dir);
            // Each example is a setting that there is.
            let settings = text.lines().map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest,
                _ => line,
            });
            let whole = settings.collect::<Vec<_>>().join("\n");
            Settings::check_text(&whole, &[]).unwrap_or_else(|fault| panic!("{fault}\n{whole}"));
        }
    }
}
