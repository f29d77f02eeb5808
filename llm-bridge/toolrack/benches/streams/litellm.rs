//! LiteLLM's proxy, installed once into a folder of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    Fault,
    process::{self, Server},
    target::KEY,
    upstream::MODEL,
};

/// What is installed.
const REQUIREMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/streams/requirements.txt");

/// The server, its address, and the folder with its configuration.
pub(crate) async fn start(upstream: &str) -> Result<(Server, String, TempDir), Fault> {
    let program = installed().await?;
    let folder = tempfile::tempdir()?;
    let configuration = folder.path().join("config.yaml");
    let text = format!(
        "model_list:\n  - model_name: {MODEL}\n    litellm_params:\n      model: openai/{MODEL}\n      api_base: {upstream}\n      api_key: none\n\
         general_settings:\n  master_key: {KEY}\n"
    );
    fs::write(&configuration, text)?;
    let address = process::free_address().await?;
    let mut command = Command::new(program);
    command.args([
        "--host",
        "127.0.0.1",
        "--num_workers",
        "1",
        "--port",
        &address.port().to_string(),
        "--config",
    ]);
    command.arg(configuration).envs([("NO_PROXY", "*"), ("LITELLM_LOG", "ERROR")]);
    let server = process::start(&mut command, address).await?;
    Ok((server, format!("http://{address}/v1"), folder))
}

async fn installed() -> Result<PathBuf, Fault> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("litellm");
    let (program, mark) = (folder.join("bin/litellm"), folder.join("installed"));
    let wanted = fs::read_to_string(REQUIREMENTS)?;
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(program);
    }
    eprintln!("installing {}", wanted.trim());
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)).await?;
    let pip = ["-m", "pip", "--disable-pip-version-check", "--quiet", "install", "-r", REQUIREMENTS];
    run(Command::new(folder.join("bin/python")).args(pip)).await?;
    fs::write(mark, wanted)?;
    Ok(program)
}

async fn run(command: &mut Command) -> Result<(), Fault> {
    let status = command.status().await?;
    if status.success() { Ok(()) } else { Err(format!("{:?}: {status}", command.as_std()).into()) }
}
