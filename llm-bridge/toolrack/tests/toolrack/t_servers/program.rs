//! The program, in a folder of its own.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program as one server is set up: a folder with its configuration.
pub(crate) struct Rack {
    folder: Arc<TempDir>,
    variables: Vec<(String, String)>,
}

impl Rack {
    /// `store` is what stands in the table `[store]`, `tools` what stands behind it. The file's paths are the folder's.
    pub(crate) fn new(store: &str, tools: &str) -> Self {
        let rack = Self { folder: Arc::new(tempfile::tempdir().unwrap()), variables: Vec::new() };
        rack.write(store, tools);
        rack
    }

    /// Another configuration in place of the one there is.
    pub(crate) fn write(&self, store: &str, tools: &str) {
        let text = format!("upstream = \"demo\"\n[guard]\naudit_arguments = true\n[store]\n{store}\n{tools}");
        self.file("toolrack.toml", &text);
    }

    /// Puts a file into the folder. It is written beside and renamed, so that who watches it sees the whole of it.
    pub(crate) fn file(&self, name: &str, content: &str) {
        let beside = self.path(&format!(".{name}.new"));
        std::fs::write(&beside, content).unwrap();
        std::fs::rename(beside, self.path(name)).unwrap();
    }

    /// Puts a line before the tables of the configuration.
    pub(crate) fn top(&self, line: &str) {
        let text = std::fs::read_to_string(self.path("toolrack.toml")).unwrap();
        self.file("toolrack.toml", &format!("{line}\n{text}"));
    }

    /// With a variable in the environment of all its processes.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TOOLRACK_") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().cloned());
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Runs a command that succeeds; gives what it prints.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "toolrack {arguments:?}: {reported}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes a key for a user: its id and the key.
    pub(crate) fn key(&self, user: &str, more: &[&str]) -> (String, String) {
        let secret = self.done(&[&["key", "create", user], more].concat()).trim().to_owned();
        assert!(secret.starts_with("trk_"), "{secret}");
        let listed = self.done(&["key", "list"]);
        let row = listed.lines().find(|row| row.contains(&format!(" {user} "))).unwrap();
        (row.split_whitespace().next().unwrap().to_owned(), secret)
    }

    pub(crate) fn export(&self, more: &[&str]) -> Vec<Value> {
        let lines = self.done(&[&["audit", "export"], more].concat());
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["record"].take()).collect()
    }

    /// The records of calls alone: those of commands are under names of several words.
    pub(crate) fn exported_calls(&self, more: &[&str]) -> Vec<Value> {
        let mut records = self.export(more);
        records.retain(|record| !record["tool"].as_str().unwrap().contains(' '));
        records
    }

    /// How many records each chain has; all of them are whole.
    pub(crate) fn verified(&self) -> Vec<(String, u64)> {
        let reported = self.done(&["audit", "verify"]);
        let chain = |line: &str| {
            let (server, rest) = line.split_once(": ").unwrap();
            let (records, rest) = rest.split_once(' ').unwrap();
            assert!(rest.starts_with("records, whole"), "{line}");
            (server.to_owned(), records.parse().unwrap())
        };
        reported.lines().map(chain).collect()
    }

    /// Starts `toolrack serve` on loopback and waits until it listens.
    pub(crate) fn serve(&self) -> Serving {
        self.serve_on("127.0.0.1:0")
    }

    pub(crate) fn serve_on(&self, address: &str) -> Serving {
        self.start(&["serve", "--listen", address])
    }

    /// Starts `toolrack dev`, whose Cargo is a script that "builds" this program, or fails with what stands in the file `fails`.
    pub(crate) fn dev(&self) -> Serving {
        let artifact = json!({
            "reason": "compiler-artifact", "package_id": "path+file:///tools#0.1.0",
            "manifest_path": self.folder.path().join("Cargo.toml"), "fresh": false,
            "target": {"name": "toolrack", "kind": ["bin"]}, "filenames": [], "executable": env!("CARGO_BIN_EXE_toolrack"),
        });
        self.file("built", &format!("{artifact}\n"));
        self.file("cargo", "#!/bin/sh\nif [ -e fails ]; then cat fails; exit 101; fi\ncat built\n");
        let script = self.folder.path().join("cargo");
        let made = Command::new("chmod").arg("+x").arg(&script).status().unwrap();
        assert!(made.success());
        let rack = self.twin().with_variable("CARGO", script.to_str().unwrap());
        rack.start(&["dev", "--listen", "127.0.0.1:0"])
    }

    /// Where the file of that name is.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, arguments: &[&str]) -> Serving {
        let mut command = self.command();
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (listens, heard) = mpsc::channel();
        let reported = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&reported);
        std::thread::spawn(move || {
            // The log is read to its end, or the program would wait for somebody to do so.
            for line in log.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("Chat at http://") {
                    let address = rest.split('/').next().unwrap_or_default();
                    let _ = listens.send(address.rsplit(':').next().unwrap_or_default().to_owned());
                }
                *written.lock().unwrap() += &(line + "\n");
            }
        });
        let mut serving = Serving { child, base: String::new(), reported };
        match heard.recv_timeout(Duration::from_secs(60)) {
            Ok(port) => serving.base = format!("http://127.0.0.1:{port}"),
            Err(_) => panic!("the server does not start: {}", serving.log()),
        }
        serving
    }

    /// What the program says when it does not start to serve on an address.
    pub(crate) fn does_not_serve_on(&self, address: &str) -> String {
        let mut command = self.command();
        command.args(["serve", "--listen", address]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > Duration::from_secs(30) {
                let _ = child.kill();
                panic!("it serves on {address}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The same set-up, for another thread.
    pub(crate) fn twin(&self) -> Self {
        Self { folder: Arc::clone(&self.folder), variables: self.variables.clone() }
    }
}

/// A server that runs; it is killed when this is dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) base: String,
    reported: Arc<Mutex<String>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Serving {
    /// Ends it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, as whoever supervises it does.
    pub(crate) fn terminate(&self) {
        let done = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Asks it to stop, waits until it has, and gives what it has logged.
    pub(crate) fn end(mut self) -> String {
        self.terminate();
        self.child.wait().unwrap();
        // What it has said last is read by another thread.
        std::thread::sleep(Duration::from_millis(50));
        self.log()
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        self.reported.lock().unwrap().clone()
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn post(
        &self,
        client: &reqwest::Client,
        path: &str,
        key: &str,
        body: &Value,
    ) -> RequestBuilder {
        client.post(format!("{}{path}", self.base)).bearer_auth(key).json(body)
    }

    pub(crate) async fn call(&self, client: &reqwest::Client, key: &str, tool: &str) -> Response {
        let body = json!({"tool_name": tool, "arguments": {}});
        self.post(client, "/execute", key, &body).send().await.unwrap()
    }
}

pub(crate) fn client() -> reqwest::Client {
    let builder = || reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60));
    toolrack_http::build_client(builder).unwrap()
}

/// Waits until something holds and gives the time that took; a second is the most it may take.
pub(crate) async fn within_a_second<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) -> Duration {
    let began = Instant::now();
    loop {
        let asked = began.elapsed();
        if holds().await {
            return began.elapsed();
        }
        assert!(asked < Duration::from_secs(1), "{what}: not seen within a second");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits where a day is about to end, since limits are those of a day.
pub(crate) async fn away_from_midnight() {
    let left = 86_400 - jiff::Timestamp::now().as_second().rem_euclid(86_400);
    if left < 120 {
        tokio::time::sleep(Duration::from_secs(left.unsigned_abs() + 1)).await;
    }
}

/// A tool that does nothing, in the words of the configuration.
pub(crate) fn mock(name: &str, more: &str) -> String {
    format!(
        "[[tools]]\nname = \"{name}\"\ndescription = \"A tool.\"\ntype = \"function\"\nhandler = \"fixed\"\n{more}\n\
         parameters = {{ type = \"object\", properties = {{ n = {{ type = \"integer\" }} }} }}\n\
         implementation = {{ type = \"mock\", mock_response = \"done\" }}\n"
    )
}
