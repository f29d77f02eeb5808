//! Redis and PostgreSQL on free ports. Each ends with the process that has started it, in whatever way that ends.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

/// Runs the command line that it is given until its input is closed, and then removes the folder.
const KEEPER: &str =
    r#"folder=$1; shift; "$@" & server=$!; read -r _; kill -"$STOP" $server; wait $server; rm -rf "$folder""#;

/// A server that runs until this is dropped.
pub(crate) struct Started {
    keeper: Child,
    pub(crate) port: u16,
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

impl Started {
    /// `signal` is how the server is ended.
    fn run(folder: &Path, port: u16, signal: &str, command: &[&str]) -> Self {
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder)
            .args(command)
            .env("STOP", signal)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { keeper, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "{command:?} does not listen");
            sleep(Duration::from_millis(20));
        }
        server
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Where a program is, or `None` with a word about the test that is skipped.
fn program(name: &str, test: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let found = folders.into_iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var("TOOLRACK_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
        assert!(!required, "{test} needs the program {name}, which is not installed");
        // Past the capture of the test's output, so that it is seen.
        let _ = writeln!(std::io::stderr(), "skipped: {test}, because {name} is not installed");
    }
    found
}

/// A Redis server on this port that keeps nothing on disk; dropping it kills it. `None` where the program is missing.
pub(crate) fn redis(test: &str, port: u16) -> Option<Started> {
    let program = program("redis-server", test)?.display().to_string();
    let folder = tempfile::tempdir().unwrap().keep();
    let (port_text, dir) = (port.to_string(), folder.display().to_string());
    let command = [&program, "--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--dir", &dir];
    Some(Started::run(&folder, port, "KILL", &command))
}

/// A PostgreSQL server.
pub(crate) struct Postgres {
    server: Started,
    folder: PathBuf,
    databases: AtomicU32,
    run_as: Vec<String>,
    bin: PathBuf,
}

impl Postgres {
    /// `None` where the program is missing.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let initdb = program("initdb", test)?;
        let bin = initdb.canonicalize().unwrap().parent().unwrap().to_owned();
        let folder = tempfile::tempdir().unwrap().keep();
        // The server refuses to run as root; its package has made a user for it.
        let root = std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own));
        let run_as: Vec<String> = match root {
            Ok(0) => {
                assert!(Command::new("chown").arg("postgres").arg(&folder).status().unwrap().success());
                // It becomes the server: a program that waits for it, as `runuser` does, would keep the signal to itself.
                ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
                    .map(str::to_owned)
                    .to_vec()
            }
            _ => Vec::new(),
        };
        let data = folder.join("data").display().to_string();
        let made = as_user(&run_as, &bin.join("initdb"))
            .args(["-D", &data, "-U", "toolrack", "-A", "trust", "-E", "UTF8", "--locale=C"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let (server, port_text) = (bin.join("postgres").display().to_string(), port.to_string());
        let sockets = folder.display().to_string();
        let mut line: Vec<&str> = run_as.iter().map(String::as_str).collect();
        line.extend([&server, "-D", &data, "-p", &port_text, "-c", "listen_addresses=127.0.0.1"]);
        line.extend(["-k", &sockets, "-c", "max_connections=100"]);
        let server = Started::run(&folder, port, "INT", &line);
        Some(Self { server, folder, databases: AtomicU32::new(0), run_as, bin })
    }

    /// Makes an empty database and gives its URL.
    pub(crate) fn new_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::SeqCst));
        let port = self.server.port.to_string();
        let began = Instant::now();
        loop {
            let made = as_user(&self.run_as, &self.bin.join("createdb"))
                .args(["-h", "127.0.0.1", "-U", "toolrack", "-p", &port, "-T", "template0", &name])
                .current_dir(&self.folder)
                .output()
                .unwrap();
            if made.status.success() {
                return format!("postgres://toolrack@127.0.0.1:{port}/{name}");
            }
            // It listens before it lets anybody in.
            let cause = String::from_utf8_lossy(&made.stderr);
            assert!(began.elapsed() < Duration::from_secs(60), "no database could be made: {cause}");
            sleep(Duration::from_millis(50));
        }
    }
}

fn as_user(run_as: &[String], program: &Path) -> Command {
    match run_as {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    }
}
