//! The `toolrack` program: the bundled tools, and what they need.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use llm_bridge::cli::{self, Host, Settings};
use mimalloc::MiMalloc;
use registry_core::{Resources, prelude::*, tenant_path};
use serde::Deserialize;
use toolrack_http::{HttpClient, PublicHttpClient};
use tools::{CodeExecutorSettings, FileFolder, Inbox, SearchEngine};

/// The C library's allocator keeps most of what streams have taken for as long as it runs.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Before anything else: a confined program is not to have what this one would make.
    if let Some(code) = toolrack_sandbox::launched().or_else(toolrack_documents::read::launched) {
        return code;
    }
    cli::main(Host { tables: &["code_executor", "file_manager", "inbox", "search"], resources })
}

/// The table `[search]` of the configuration, under the variables `TOOLRACK_SEARCH_*`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Search {
    engine: Option<String>,
    url: Option<String>,
    api_key: Option<String>,
}

/// The tables `[inbox]` and `[file_manager]` of the configuration, under the variables `TOOLRACK_INBOX_FOLDER` and
/// `TOOLRACK_FILE_MANAGER_FOLDER`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FolderTable {
    folder: Option<PathBuf>,
}

fn resources(settings: &Settings) -> Result<Resources, String> {
    let text = |error: ToolError| error.message().to_owned();
    let mut resources =
        Resources::new().with(HttpClient::new().map_err(text)?).with(PublicHttpClient::new().map_err(text)?);
    let file: Search = settings.host_table("search")?;
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let engine = variable("TOOLRACK_SEARCH_ENGINE").or(file.engine);
    let url = variable("TOOLRACK_SEARCH_URL").or(file.url);
    let api_key = variable("TOOLRACK_SEARCH_API_KEY").or(file.api_key);
    let engine = SearchEngine::from_settings(engine.as_deref(), url.as_deref(), api_key.as_deref())
        .map_err(|error| error.to_string())?;
    match engine {
        Some(engine) => resources.insert(Arc::new(engine)),
        None => resources.explain_absence::<SearchEngine>(SearchEngine::HOW_TO_PROVIDE),
    }
    let folder = |table: &str, name: &str, usual: &str| -> Result<PathBuf, String> {
        let file: FolderTable = settings.host_table(table)?;
        let folder = variable(name).map(PathBuf::from).or(file.folder);
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| settings.data_dir.join(usual));
        // With its name, beside which other tenants have theirs.
        std::path::absolute(&folder).map_err(|error| format!("{}: {error}", folder.display()))
    };
    let inbox = folder("inbox", "TOOLRACK_INBOX_FOLDER", "inbox")?;
    resources.insert_by_request(move |context| Ok(Inbox::new(tenant_path(&inbox, context.tenant()))));
    let files = folder("file_manager", "TOOLRACK_FILE_MANAGER_FOLDER", "files")?;
    resources.insert_by_request(move |context| match cfg!(unix) {
        true => Ok(FileFolder::new(tenant_path(&files, context.tenant()))),
        false => Err("folders are only kept closed on Unix".to_owned()),
    });
    let code: CodeExecutorSettings = settings.host_table("code_executor")?;
    code.provide("/proc/self/exe".into(), &mut resources)?;
    let documents = settings.documents()?;
    let with_graph = documents.clone();
    resources.insert_by_request(move |context| documents.for_request(context));
    resources.insert_by_request(move |context| with_graph.graph_for_request(context));
    let model = settings.language_model();
    resources.insert_by_request(move |_| model.missing().map_or_else(|| Ok(model.clone()), Err));
    Ok(resources)
}
