//! The template of a model of Ollama.
//!
//! `POST /api/show` leaves the template out of what it has of a model's file (`server/routes.go`), and gives one of its own in Go's language
//! instead, except for models that it renders with their own. It names the file, though, which can be read where Ollama runs on this machine.
//! The server is not trusted with that: only what looks like a file of its models is opened, and nothing but the template and two
//! tokens of a GGUF file is taken from it.

use std::{
    fs::File,
    io::BufReader,
    path::{Component, Path, PathBuf},
};

use reqwest::Url;
use serde_json::Value;
use tokio::{task::spawn_blocking, time::timeout};
use toolrack_templates::GgufTemplate;

use super::{Given, RENDER_TIME};
use crate::upstream::error::UpstreamError;

/// The folder of its models' files, and how their names begin. Older versions have a colon there.
const FOLDER: &str = "blobs";
const DIGESTS: [&str; 2] = ["sha256-", "sha256:"];

/// What `POST /api/show` says of the template, for a server at this address.
///
/// # Errors
/// When it says nothing, and the file of the model is not to be read here; the text says what to do.
pub(super) async fn given(base: &str, shown: &Value, adds_bos: bool) -> Result<Given, UpstreamError> {
    let why = match file_of(shown).filter(|_| is_on_this_machine(base)) {
        None => "its file is not on this machine".to_owned(),
        Some(file) => match read(file).await {
            Ok(GgufTemplate { source, bos_token, eos_token }) => {
                return Ok(Given { source, bos_token, eos_token, adds_bos });
            }
            Err(why) => format!("its file cannot be read here: {why}"),
        },
    };
    match jinja_of(shown) {
        Some(source) => Ok(Given { source, adds_bos, ..Given::default() }),
        None => Err(UpstreamError::failed(format!(
            "Ollama does not give the chat template of the model, and {why}; set a .jinja or .gguf file with it as `template` of the model"
        ))),
    }
}

/// Whether an address is one of this machine alone.
fn is_on_this_machine(base: &str) -> bool {
    let url = Url::parse(base).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}

/// The file of the model, if it is called as Ollama calls them: `FROM /…/blobs/sha256-…`.
fn file_of(shown: &Value) -> Option<PathBuf> {
    let lines = shown.get("modelfile")?.as_str()?.lines();
    let file =
        lines.filter_map(|line| line.strip_prefix("FROM ")).map(|path| Path::new(path.trim())).next()?;
    let name = file.file_name()?.to_str()?;
    let digest = DIGESTS.iter().find_map(|begins| name.strip_prefix(begins))?;
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let goes_up = file.components().any(|component| component == Component::ParentDir);
    let is_in_folder = file.parent()?.file_name()? == FOLDER;
    (is_digest && is_in_folder && file.is_absolute() && !goes_up).then(|| file.to_owned())
}

/// What a model's file has; an error has nothing of its content.
async fn read(file: PathBuf) -> Result<GgufTemplate, String> {
    let read = move || {
        // A link might lead anywhere, and what is no file might never end.
        let is_file = |metadata: std::fs::Metadata| metadata.is_file();
        let told = |error: std::io::Error| error.kind().to_string();
        if !file.symlink_metadata().map(is_file).map_err(told)? {
            return Err("it is no file".to_owned());
        }
        let open = File::open(&file).map_err(told)?;
        if !open.metadata().map(is_file).map_err(told)? {
            return Err("it is no file".to_owned());
        }
        GgufTemplate::read(&mut BufReader::new(open)).map_err(|error| error.to_string())
    };
    let late = || "it took too long".to_owned();
    let read = timeout(RENDER_TIME, spawn_blocking(read)).await.map_err(|_| late())?;
    read.map_err(|_| late())?
}

/// The model's own template, where Ollama renders with that. One in Go's language has no statements in `{%`.
fn jinja_of(shown: &Value) -> Option<String> {
    let template = shown.get("template")?.as_str()?;
    template.contains("{%").then(|| template.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b14_only_a_server_on_loopback_names_files() {
        for base in
            ["http://127.0.0.1:11434/v1", "http://localhost:11434", "http://[::1]:11434", "http://127.9.9.9"]
        {
            assert!(is_on_this_machine(base), "{base}");
        }
        for base in [
            "http://192.168.1.2:11434",
            "http://0.0.0.0:11434",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://[::ffff:10.0.0.1]",
            "http://example.com/127.0.0.1",
            "",
        ] {
            assert!(!is_on_this_machine(base), "{base}");
        }
    }

    #[test]
    fn b14_only_files_of_models_are_read() {
        let digest = "0123456789abcdef".repeat(4);
        let shown = |from: &str| json!({"modelfile": format!("# Modelfile\n# FROM m:latest\n\nFROM {from}\nTEMPLATE x\n")});
        let blob = format!("/usr/share/ollama/.ollama/models/blobs/sha256-{digest}");
        assert_eq!(file_of(&shown(&blob)), Some(PathBuf::from(&blob)));
        assert!(file_of(&shown(&blob.replace('-', ":"))).is_some());
        for from in [
            "/etc/passwd".to_owned(),
            "qwen3:8b".to_owned(),
            format!("blobs/sha256-{digest}"),
            format!("/home/ada/sha256-{digest}"),
            format!("/models/blobs/../keys/blobs/sha256-{digest}"),
            format!("/models/blobs/sha256-{digest}.key"),
            format!("/models/blobs/sha256-{}", &digest[1..]),
            format!("/models/blobs/sha256-{}", "z".repeat(64)),
        ] {
            assert_eq!(file_of(&shown(&from)), None, "{from}");
        }
        assert_eq!(file_of(&json!({"modelfile": 1})), None);
    }
}
