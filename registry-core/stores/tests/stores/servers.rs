//! Real Redis and PostgreSQL servers.
//!
//! Tests share the servers that `TOOLRACK_TEST_REDIS_URL` and `TOOLRACK_TEST_POSTGRES_URL` name, where each has a database of its own.
//! Without these variables a test starts its own server on a free port, as tests do that stop or kill one. Where the program
//! of a server is not installed its tests are skipped, by name; with `CI=true` they fail instead.
//!
//! A server that was started here ends with the process that has started it, in whatever way that ends.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

/// Runs the command line that it is given until its input is closed, and then ends it as `kill -9` does and removes the folder.
/// PostgreSQL is made to end at once instead, so that its own processes end with it; it stands behind the program that changes the user.
const KEEPER: &str = r#"
folder=$1; shift
"$@" & server=$!
echo $server > "$folder/pid"
read -r _
if [ -f "$folder/data/postmaster.pid" ]; then
  server=$(head -n 1 "$folder/data/postmaster.pid")
  kill -QUIT "$server"
  # One that was started again is not this one's to wait for.
  for _ in $(seq 100); do kill -0 "$server" 2>/dev/null || break; sleep 0.05; done
else
  kill -KILL $server
fi
wait
rm -rf "$folder"
"#;

pub(crate) struct Server {
    keeper: Child,
    folder: PathBuf,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

impl Server {
    fn start(folder: &Path, port: u16, command: &[&str]) -> Self {
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { keeper, folder: folder.to_owned(), port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "{command:?} does not listen");
            sleep(Duration::from_millis(20));
        }
        server
    }

    /// Sends a signal to the server, such as `STOP` and `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let server = std::fs::read_to_string(self.folder.join("pid")).unwrap();
        let sent = Command::new("kill").args([&format!("-{name}"), server.trim()]).status();
        assert!(sent.unwrap().success());
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Where a program is; `None` where it is missing, and the test is skipped.
fn program(name: &str, test: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let found = folders.into_iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!ci, "{test} needs the program {name}, which is not installed");
        // Past the capture of the test's output, so that it is seen.
        let _ = writeln!(std::io::stderr(), "skipped: {test}, because {name} is not installed");
    }
    found
}

/// An empty database of Redis.
pub(crate) struct RedisDatabase {
    pub(crate) url: String,
    _server: Option<Server>,
}

/// A database for one test; `None` where there is no Redis.
pub(crate) fn redis(test: &str) -> Option<RedisDatabase> {
    if let Ok(shared) = std::env::var("TOOLRACK_TEST_REDIS_URL") {
        let number = next_redis_database(&shared);
        return Some(RedisDatabase { url: format!("{shared}/{number}"), _server: None });
    }
    let port = free_port();
    let server = redis_on(test, port)?;
    Some(RedisDatabase { url: format!("redis://127.0.0.1:{port}/0"), _server: Some(server) })
}

/// A number that no other test has: database 0 holds the last one.
fn next_redis_database(url: &str) -> u32 {
    let address = url.trim_start_matches("redis://");
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(b"INCR last_test_database\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(connection).read_line(&mut answer).unwrap();
    answer.trim().trim_start_matches(':').parse().unwrap()
}

/// A Redis server on this port that keeps nothing on disk, for a test that kills it; `None` where there is none.
pub(crate) fn redis_on(test: &str, port: u16) -> Option<Server> {
    let program = program("redis-server", test)?;
    let folder = tempfile::tempdir().unwrap().keep();
    let (program, port_text) = (program.display().to_string(), port.to_string());
    let dir = folder.display().to_string();
    let command = [&program, "--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--dir", &dir];
    Some(Server::start(&folder, port, &command))
}

/// The URL of an empty PostgreSQL database for one test; `None` where there is no server.
pub(crate) fn postgres(test: &str) -> Option<String> {
    static STARTED: OnceLock<Postgres> = OnceLock::new();
    if let Ok(shared) = std::env::var("TOOLRACK_TEST_POSTGRES_URL") {
        let createdb = program("createdb", test)?;
        return Some(new_database(&shared, || Command::new(&createdb)));
    }
    let initdb = program("initdb", test)?;
    Some(STARTED.get_or_init(|| Postgres::start(&initdb)).new_database())
}

/// A PostgreSQL server that a test stops and starts again; `None` where there is none.
pub(crate) fn own_postgres(test: &str) -> Option<Postgres> {
    program("initdb", test).map(|initdb| Postgres::start(&initdb))
}

pub(crate) struct Postgres {
    server: Server,
    folder: PathBuf,
    run_as: Vec<String>,
    bin: PathBuf,
}

impl Postgres {
    fn start(initdb: &Path) -> Self {
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
        let made = command(&run_as, &bin.join("initdb"))
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
        line.extend(["-k", &sockets, "-c", "max_connections=300"]);
        let server = Server::start(&folder, port, &line);
        Self { server, folder, run_as, bin }
    }

    /// Stops it as an administrator does: whoever is connected gets a message.
    pub(crate) fn stop(&self) {
        self.control(&["stop", "-m", "fast"]);
    }

    /// Starts it again where it was, and waits until it lets clients in.
    pub(crate) fn start_again(&self) {
        let (port, sockets) = (self.server.port, self.folder.display());
        let options = format!("-p {port} -c listen_addresses=127.0.0.1 -k {sockets} -c max_connections=300");
        self.control(&["start", "-o", &options, "-l", &self.folder.join("data/log").display().to_string()]);
    }

    fn control(&self, arguments: &[&str]) {
        let mut program = command(&self.run_as, &self.bin.join("pg_ctl"));
        program.arg("-D").arg(self.folder.join("data")).arg("-w").args(arguments).current_dir(&self.folder);
        // What it starts must not hold these open.
        let done = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(done.unwrap().success(), "pg_ctl {arguments:?}");
    }

    /// Makes an empty database and gives its URL.
    pub(crate) fn new_database(&self) -> String {
        let url = format!("postgres://toolrack@127.0.0.1:{}", self.server.port);
        new_database(&url, || {
            let mut createdb = command(&self.run_as, &self.bin.join("createdb"));
            createdb.current_dir(&self.folder);
            createdb
        })
    }
}

/// Makes an empty database on the server at a URL.
fn new_database(server: &str, createdb: impl Fn() -> Command) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    // Tests run in processes of their own, and the server may be older than this one.
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
    let name = format!("test_{now}_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::SeqCst));
    let began = Instant::now();
    loop {
        let maintenance = format!("{server}/postgres");
        let made = createdb()
            .args(["--maintenance-db", &maintenance, "--template", "template0", &name])
            .output()
            .unwrap();
        if made.status.success() {
            return format!("{server}/{name}");
        }
        // It listens before it lets anybody in.
        let cause = String::from_utf8_lossy(&made.stderr);
        assert!(began.elapsed() < Duration::from_secs(60), "no database could be made: {cause}");
        sleep(Duration::from_millis(50));
    }
}

fn command(run_as: &[String], program: &Path) -> Command {
    match run_as {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    }
}
