//! A module that was written in Python from the contract, as it is.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use registry_core::ToolCall;
use serde_json::{Value, json};

use super::{Server, ada};

struct Module(Child);

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The module and its address; `None`, with a word, where there is no Python.
fn start(test: &str) -> Option<(Module, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/remote/modules/research.py");
    let Ok(child) = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn() else {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!ci, "{test} needs python3, which is not installed");
        // Past the capture of the test's output, so that it is seen.
        let _ = writeln!(std::io::stderr(), "skipped: {test}, because python3 is not installed");
        return None;
    };
    let mut module = Module(child);
    let mut port = String::new();
    BufReader::new(module.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Some((module, format!("http://127.0.0.1:{}", port.trim())))
}

#[tokio::test]
async fn m8_a_module_in_python_is_used_as_it_is() {
    let Some((module, url)) = start("m8_a_module_in_python_is_used_as_it_is") else { return };
    let server = Server::with("research", &url).await;
    assert_eq!(server.names(), ["research.fail", "research.web_search"]);
    let search = async |arguments: Value| {
        server.registry.execute(&ada(), ToolCall::new("research.web_search", arguments)).await
    };
    let found = search(json!({"query": "rust", "max_results": 2, "user_id": "root"})).await;
    assert_eq!(found.result.unwrap().value, json!({"found": ["rust 0", "rust 1"], "for": "ada"}));
    assert!(search(json!({})).await.result.unwrap_err().message().contains("query"));
    assert_eq!(
        server.error("research.fail").await.message(),
        r#"Module returned status 500: {"detail": "no index"}"#
    );
    drop(module);
    let gone = server.error("research.fail").await;
    assert!(gone.message().starts_with("Tool execution error: ") && gone.is_retryable(), "{gone}");
    assert_eq!(server.names().len(), 2);
}
