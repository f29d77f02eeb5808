//! `toolrack modules list`, `refresh` and `accept`: they ask a server that runs, which alone knows how its modules do.

use std::{
    io::IsTerminal,
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use comfy_table::{ContentArrangement, Table, presets};
use registry_core::http::build_client;
use reqwest::{Client, Method, RequestBuilder, Url, redirect};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Settings,
    out::{one_line, print_line},
    settings::Secret,
};

/// How long the server may take beside the time it gives its modules.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Subcommand)]
pub(super) enum ModulesCommand {
    /// List the modules, what they have and how they do (what happens without a command)
    List(Asked),
    /// Have the server ask all modules for their tools now
    Refresh(Asked),
    /// Accept a module's tools as they are listed, their changes included
    Accept {
        /// The module's name
        name: String,
        #[command(flatten)]
        asked: Asked,
    },
}

/// The server that is asked, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    /// Address of the server [default: the one that it listens on by the settings]
    #[arg(long, env = "TOOLRACK_SERVER", value_name = "URL")]
    server: Option<String>,
    /// An admin's key [default: the api_key of the settings]
    #[arg(long, env = "TOOLRACK_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<Secret>,
    /// Print an array of objects
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    list: Asked,
    command: Option<ModulesCommand>,
    settings: &Settings,
) -> Result<ExitCode, String> {
    let (asked, method, path) = match command.unwrap_or(ModulesCommand::List(list)) {
        ModulesCommand::List(asked) => (asked, Method::GET, vec!["api", "modules"]),
        ModulesCommand::Refresh(asked) => (asked, Method::POST, vec!["refresh-tools"]),
        ModulesCommand::Accept { name, asked } => {
            let server = Server::new(&asked, settings)?;
            let report = server.ask(Method::POST, &["api", "modules", &name, "accept"]).await?;
            return print(&Value::Array(vec![report]), asked.json);
        }
    };
    let mut answer = Server::new(&asked, settings)?.ask(method, &path).await?;
    let modules = answer.get_mut("modules").map(Value::take).unwrap_or_default();
    print(&modules, asked.json)
}

/// A server that runs.
struct Server {
    base: Url,
    key: Option<Secret>,
    http: Client,
}

impl Server {
    fn new(asked: &Asked, settings: &Settings) -> Result<Self, String> {
        const SUCH: &str = "write one such as http://127.0.0.1:7331";
        let given = asked.server.as_deref().filter(|server| !server.is_empty());
        let text = given.map_or_else(|| format!("http://{}", reachable(settings.listen)), str::to_owned);
        let base = Url::parse(&text)
            .map_err(|error| format!("--server: this is not an address ({error}); {SUCH}"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(format!("--server: the address does not begin with http:// or https://; {SUCH}"));
        }
        let patience = settings.modules.discovery_timeout + PATIENCE;
        let client = || Client::builder().redirect(redirect::Policy::none()).timeout(patience);
        let http = build_client(client).map_err(|error| format!("the system's TLS: {error}"))?;
        let key = asked.key.clone().filter(|key| !key.is_empty());
        Ok(Self { base, key: key.or_else(|| settings.api_key.clone()), http })
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder, String> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| "--server: this is no address of a server".to_owned())?
            .pop_if_empty()
            .extend(path);
        let request = self.http.request(method, url);
        Ok(match &self.key {
            Some(key) => request.bearer_auth(key.as_str()),
            None => request,
        })
    }

    async fn ask(&self, method: Method, path: &[&str]) -> Result<Value, String> {
        let base = self.base.as_str();
        let answer = self.request(method, path)?.send().await.map_err(|error| {
            let cause = error.without_url();
            format!("no server answers at {base} ({cause}); start one with `toolrack serve`, or name it with --server")
        })?;
        let status = answer.status();
        let body: Value = answer
            .json()
            .await
            .map_err(|error| format!("{base} does not answer as a Toolrack does: {}", error.without_url()))?;
        if status.is_success() {
            return Ok(body);
        }
        let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or("it does not say why");
        Err(format!("the server refuses with {}: {}", status.as_u16(), one_line(message)))
    }
}

/// Where a server that listens there is found from this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, listen.port()).into() } else { listen }
}

/// What the server says of a module; somebody below admin is told less.
#[derive(Debug, Deserialize)]
struct Report {
    name: String,
    tools: usize,
    breaker: String,
    version: Option<String>,
    url: Option<String>,
    age: Option<u64>,
    error: Option<String>,
    #[serde(default)]
    pinned: bool,
    #[serde(default)]
    changes: Vec<ToolChange>,
    #[serde(default)]
    faults: Vec<ToolFault>,
    #[serde(default)]
    duplicates: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ToolChange {
    tool: String,
    parts: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ToolFault {
    tool: String,
    message: String,
    taken: bool,
}

fn print(modules: &Value, json: bool) -> Result<ExitCode, String> {
    if json {
        print_line(serde_json::to_string_pretty(modules).map_err(|error| error.to_string())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let reports = Vec::<Report>::deserialize(modules).map_err(|error| {
        format!("the server's answer is not understood: {error}; is it of another version?")
    })?;
    if reports.is_empty() {
        print_line("There are no modules. They are named in the configuration, under module_services.")?;
        return Ok(ExitCode::SUCCESS);
    }
    print_line(table(&reports))?;
    for note in reports.iter().flat_map(notes) {
        print_line(one_line(&note))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(reports: &[Report]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(140);
        table.force_no_tty();
    }
    table.set_header(["module", "tools", "breaker", "manifest", "version", "address"]);
    for report in reports {
        let manifest = match (report.age, &report.url) {
            (Some(age), _) => format!("{age} s ago"),
            (None, Some(_)) => "none yet".to_owned(),
            (None, None) => String::new(),
        };
        let name = if report.pinned { format!("{} (pinned)", report.name) } else { report.name.clone() };
        let [name, version, url] = [Some(&name), report.version.as_ref(), report.url.as_ref()]
            .map(|text| one_line(text.map_or("", |text| text)));
        table.add_row([
            name,
            report.tools.to_string(),
            report.breaker.replace('_', " "),
            manifest,
            version,
            url,
        ]);
    }
    table
}

/// What is not as it should be with a module.
fn notes(report: &Report) -> Vec<String> {
    let name = &report.name;
    let error = report.error.iter().map(|error| format!("{name}: could not be asked: {error}"));
    let off = if report.pinned { "; off until it is accepted" } else { "" };
    let changes = report.changes.iter().map(|change| match change.parts.as_slice() {
        [new] if new == "new" => format!("{name}: {} is new{off}", change.tool),
        parts => {
            format!("{name}: {} has another {} than was accepted{off}", change.tool, parts.join(" and "))
        }
    });
    let faults = report.faults.iter().map(|fault| {
        let left_out = if fault.taken { "" } else { " is left out" };
        format!("{name}: {}{left_out}: {}", fault.tool, fault.message)
    });
    let duplicates = report.duplicates.iter().map(|duplicate| format!("{name}: {duplicate}"));
    error.chain(changes).chain(faults).chain(duplicates).collect()
}
