//! `toolrack modules list`, `refresh` and `accept`: they ask a server that runs, which alone knows how its modules do.

use std::process::ExitCode;

use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Settings,
    reports::{self, Notes},
    running::{Asked, Server},
};

#[derive(Debug, clap::Subcommand)]
pub(super) enum ModulesCommand {
    /// List the modules with their tools and health; the default command
    List(Asked),
    /// Ask all modules for their tools now
    Refresh(Asked),
    /// Accept the tools of a module as listed, with their changes
    Accept {
        /// The module's name
        name: String,
        /// Digest from the list: only the tools listed there are accepted
        digest: String,
        #[command(flatten)]
        asked: Asked,
    },
}

pub(super) async fn run(
    list: Asked,
    command: Option<ModulesCommand>,
    settings: &Settings,
) -> Result<ExitCode, String> {
    let (asked, method, path) = match command.unwrap_or(ModulesCommand::List(list)) {
        ModulesCommand::List(asked) => (asked, Method::GET, vec!["api", "modules"]),
        ModulesCommand::Refresh(asked) => (asked, Method::POST, vec!["refresh-tools"]),
        ModulesCommand::Accept { name, digest, asked } => {
            let server = Server::new(&asked, settings)?;
            let report = server.accept(&["api", "modules", &name, "accept"], &digest).await?;
            return reports::print::<Report>(&Value::Array(vec![report]), asked.json);
        }
    };
    let mut answer = Server::new(&asked, settings)?.ask(method, &path).await?;
    let modules = answer.get_mut("modules").map(Value::take).unwrap_or_default();
    reports::print::<Report>(&modules, asked.json)
}

/// What the server says of a module; somebody below admin is told less.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(flatten)]
    notes: Notes,
    tools: usize,
    breaker: String,
    version: Option<String>,
    url: Option<String>,
    age: Option<u64>,
}

impl reports::Report for Report {
    const COMMAND: &'static str = "modules";
    const NONE: &'static str = "There are no modules. Add them to the configuration under `module_services`.";
    const HEADER: &'static [&'static str] = &["module", "tools", "breaker", "manifest", "version", "address"];

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn cells(&self) -> Vec<String> {
        let manifest = match (self.age, &self.url) {
            (Some(age), _) => format!("{age} s ago"),
            (None, Some(_)) => "none yet".to_owned(),
            (None, None) => String::new(),
        };
        vec![
            self.tools.to_string(),
            self.breaker.replace('_', " "),
            manifest,
            self.version.clone().unwrap_or_default(),
            self.url.clone().unwrap_or_default(),
        ]
    }
}
