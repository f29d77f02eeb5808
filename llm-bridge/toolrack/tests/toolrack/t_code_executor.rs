//! `code_executor.run_python` and `code_executor.run_shell` against hostile code. The table of attacks is `code_executor/attacks.toml`.

use std::{
    fs,
    io::ErrorKind::WouldBlock,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        net::{UnixDatagram, UnixListener},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use registry_core::{Caller, Permission, Registry, Resources, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};
use tools::{CodeExecutorSettings, Python, Shell};

const SECRET: &str = "the server's secret";
/// Where the rows are run, for the test that is started as another user.
const FOLDER: &str = "CODE_EXECUTOR_FOLDER";
const LAUNCHER: &str = "CODE_EXECUTOR_LAUNCHER";
/// Nobody's number.
const NOBODY: u32 = 65_534;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    attack: Vec<Attack>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attack {
    name: String,
    python: Option<String>,
    shell: Option<String>,
    reported: String,
    #[serde(default)]
    works: bool,
}

/// What every Python row can use.
const TRY_CALL: &str = "
import ctypes, errno
_libc = ctypes.CDLL(None, use_errno=True)
def try_call(name, *arguments):
    ctypes.set_errno(0)
    done = getattr(_libc, name)(*arguments)
    error = ctypes.get_errno()
    print(name, done, errno.errorcode.get(error, error) if done == -1 else 'ESCAPED')
";

/// What a server has that code is to leave alone.
struct Server {
    folder: PathBuf,
    secret: PathBuf,
    port: TcpListener,
    socket: UnixListener,
    datagrams: UnixDatagram,
    registry: Registry,
}

impl Server {
    fn start(folder: &Path, launcher: PathBuf, settings: &CodeExecutorSettings) -> Self {
        let secret = folder.join("secret");
        fs::write(&secret, SECRET).unwrap();
        let (port, socket) = (TcpListener::bind("127.0.0.1:0"), UnixListener::bind(folder.join("socket")));
        let datagrams = UnixDatagram::bind(folder.join("datagrams")).unwrap();
        let (port, socket) = (port.unwrap(), socket.unwrap());
        port.set_nonblocking(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let sandbox = settings.sandbox(launcher).unwrap();
        let python = Python::start(sandbox.clone(), settings.python.as_deref()).unwrap();
        let shell = Shell::start(sandbox, settings.shell.as_deref()).unwrap();
        let resources = Resources::new().with(python).with(shell);
        let registry = Registry::builder().resources(resources).build().unwrap();
        Self { folder: folder.to_owned(), secret, port, socket, datagrams, registry }
    }

    async fn run(&self, tool: &str, argument: &str, code: &str) -> Value {
        let context = self.registry.context(Caller::new("ada", Permission::Admin));
        let call = ToolCall::new(format!("code_executor.{tool}"), json!({ argument: code }));
        let outcome = self.registry.execute(&context, call).await;
        outcome.result.unwrap_or_else(|error| panic!("{}", error.message())).value
    }

    async fn python(&self, code: &str) -> Value {
        self.run("run_python", "code", code).await
    }

    async fn shell(&self, code: &str) -> Value {
        self.run("run_shell", "commands", code).await
    }

    /// What has come of an attack that must not.
    fn harm(&self, mode: u32, modified: i64) -> Vec<String> {
        let mut harm = Vec::new();
        if fs::read_to_string(&self.secret).unwrap_or_default() != SECRET {
            harm.push("the secret file has changed".to_owned());
        }
        match fs::metadata(&self.secret) {
            Ok(file) if (file.mode(), file.mtime()) == (mode, modified) => {}
            other => harm.push(format!("the secret file is another: {other:?}")),
        }
        if !matches!(self.port.accept(), Err(error) if error.kind() == WouldBlock)
            || !matches!(self.socket.accept(), Err(error) if error.kind() == WouldBlock)
            || !matches!(self.datagrams.recv(&mut [0; 8]), Err(error) if error.kind() == WouldBlock)
        {
            harm.push("the server was reached".to_owned());
        }
        harm.extend(
            left_processes(&self.folder).into_iter().map(|left| format!("a process is left: {left}")),
        );
        for entry in fs::read_dir(&self.folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !["secret", "socket", "datagrams", "toolrack", "tests"].contains(&name.as_str()) {
                harm.push(format!("a file is left: {name}"));
            }
        }
        harm
    }
}

/// The processes that were started in a folder: a confined one has it in its environment.
fn left_processes(folder: &Path) -> Vec<String> {
    let home = format!("HOME={}/", folder.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&home)
        })
        .map(|entry| fs::read_to_string(entry.path().join("comm")).unwrap_or_default())
        .collect()
}

fn launcher() -> PathBuf {
    std::env::var_os(LAUNCHER).map_or_else(|| env!("CARGO_BIN_EXE_toolrack").into(), PathBuf::from)
}

fn settings() -> CodeExecutorSettings {
    CodeExecutorSettings { enabled: true, timeout_seconds: 4, memory_mib: 256, ..Default::default() }
}

/// Runs the rows as whoever runs this.
#[tokio::test]
#[ignore = "the tests below start it, in a folder and as a user"]
async fn rows() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the folder to run them in"));
    let server = Server::start(&folder, launcher(), &settings());
    let before = fs::metadata(&server.secret).unwrap();
    let (mode, modified) = (before.mode(), before.mtime());
    let table: Table = toml::from_str(
        &fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/code_executor_attacks.toml"))
            .unwrap(),
    )
    .unwrap();
    let only = std::env::var("CODE_EXECUTOR_ONLY").ok();
    let mut faults = Vec::new();
    let mut run = 0;
    for attack in
        table.attack.iter().filter(|attack| only.as_ref().is_none_or(|only| attack.name.contains(only)))
    {
        let fill = |code: &str| {
            code.replace("{secret}", server.secret.to_str().unwrap())
                .replace("{socket}", folder.join("datagrams").to_str().unwrap())
                .replace("{port}", &server.port.local_addr().unwrap().port().to_string())
                .replace("{server}", &std::process::id().to_string())
        };
        let began = Instant::now();
        let value = match (&attack.python, &attack.shell) {
            (Some(code), None) => server.python(&format!("{TRY_CALL}{}", fill(code))).await,
            (None, Some(code)) => server.shell(&fill(code)).await,
            _ => panic!("{}: either `python` or `shell`", attack.name),
        };
        run += 1;
        let mut harm = server.harm(mode, modified);
        // The line of a program that failed is in what Python says of it.
        let said = value["stdout"].as_str().unwrap_or_default();
        if said.contains("ESCAPED") || value.to_string().contains(SECRET) {
            harm.push("it got out".to_owned());
        }
        if !value.to_string().contains(&attack.reported) {
            harm.push(format!("`{}` is not reported", attack.reported));
        }
        if attack.works && (value["exit_code"] != 0 || !value["stopped"].is_null()) {
            harm.push("it does not work".to_owned());
        }
        let took = began.elapsed();
        if took > Duration::from_secs(8) {
            harm.push(format!("it took {took:?}"));
        }
        let shown: String = value.to_string().chars().take(300).collect();
        println!("{} ({} ms): {shown}", attack.name, took.as_millis());
        if !harm.is_empty() {
            faults.push(format!("{}: {}\n    {value:.2000}", attack.name, harm.join("; ")));
        }
    }
    assert!(run > 0);
    assert!(faults.is_empty(), "{} of {run} rows:\n{}", faults.len(), faults.join("\n"));
}

/// Starts the rows as a user, in an environment with a secret and with a file open that is nobody else's business.
fn run_rows(user: Option<u32>) {
    let folder = tempfile::tempdir().unwrap();
    // No longer than a Unix socket's name may be, and with nothing in it that a shell would read otherwise.
    let folder = folder.path().canonicalize().unwrap();
    let (mut test, mut launcher) = (std::env::current_exe().unwrap(), launcher());
    if user.is_some() {
        // Where the build is, another user may not look.
        for (program, name) in [(&mut test, "tests"), (&mut launcher, "toolrack")] {
            let copy = folder.join(name);
            fs::copy(&*program, &copy).unwrap();
            *program = copy;
        }
        chown(&folder, user, user).unwrap();
    }
    let leaked = folder.with_extension("leaked");
    fs::write(&leaked, SECRET).unwrap();
    let mut rows = Command::new("/bin/sh");
    rows.args(["-c", r#"exec 9<"$0"; exec "$@""#]).arg(&leaked).arg(&test);
    rows.args(["--exact", "t_code_executor::rows", "--ignored", "--nocapture"]);
    rows.env(FOLDER, &folder).env(LAUNCHER, &launcher).env("TMPDIR", &folder).env("TOOLRACK_API_KEY", SECRET);
    rows.stdin(Stdio::null()).current_dir("/");
    if let Some(user) = user {
        rows.uid(user).gid(user);
        fs::set_permissions(&leaked, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let output = rows.output().unwrap();
    fs::remove_file(&leaked).unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    println!("{said}");
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn t8_no_attack_on_the_code_executor_succeeds() {
    run_rows(None);
}

#[test]
fn t8_no_attack_on_the_code_executor_of_an_ordinary_user_succeeds() {
    if is_root() {
        run_rows(Some(NOBODY));
    } else {
        println!("the tests run as an ordinary user already, so this is the test above");
    }
}

/// A server in a folder of its own.
fn server() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), launcher(), &settings());
    (folder, server)
}

/// Waits until a program that was started as `sleep SECONDS` is there, or is no more.
fn wait_for_sleep(seconds: &str, there: bool) {
    let is_there = || {
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line == format!("sleep\0{seconds}\0").as_bytes()
        })
    };
    let began = Instant::now();
    while is_there() != there {
        assert!(began.elapsed() < Duration::from_secs(20), "sleep {seconds}: expected {there}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// So many seconds, and a fraction that no other test has.
fn seconds(test: u32) -> String {
    format!("300.{test}{}", std::process::id())
}

#[tokio::test(flavor = "multi_thread")]
async fn t8_code_that_nobody_waits_for_is_ended() {
    let (folder, server) = server();
    let seconds = seconds(1);
    let code = format!("sleep {seconds} & exec sleep {seconds}");
    let call = server.shell(&code);
    let seen = {
        let seconds = seconds.clone();
        tokio::task::spawn_blocking(move || wait_for_sleep(&seconds, true))
    };
    tokio::select! {
        value = call => panic!("it ended by itself: {value}"),
        seen = seen => seen.unwrap(),
    }
    wait_for_sleep(&seconds, false);
    drop(folder);
}

#[test]
fn t8_code_of_a_server_that_is_killed_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("toolrack.toml"), "[code_executor]\nenabled = true\ntimeout_seconds = 60\n")
        .unwrap();
    let seconds = seconds(2);
    let arguments = json!({ "commands": format!("sleep {seconds} & sleep {seconds}") }).to_string();
    let mut server = Command::new(launcher())
        .args(["call", "code_executor.run_shell", &arguments, "--level", "admin"])
        .current_dir(&folder)
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_sleep(&seconds, true);
    server.kill().unwrap();
    server.wait().unwrap();
    wait_for_sleep(&seconds, false);
    let began = Instant::now();
    let is_left = || {
        let entries = fs::read_dir(folder.path()).unwrap().flatten();
        entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("toolrack-"))
    };
    while is_left() {
        assert!(began.elapsed() < Duration::from_secs(20), "its folder is left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn t8_programs_run_beside_one_another() {
    let (_folder, server) = server();
    let runs = (0..6).map(|number| {
        let server = &server;
        async move { server.python(&format!("import time; time.sleep(0.3); print({number} * 7)")).await }
    });
    let values = futures_util::future::join_all(runs).await;
    for (number, value) in values.iter().enumerate() {
        assert_eq!(value["stdout"], format!("{}\n", number * 7), "{value}");
    }
}

#[tokio::test]
async fn t8_levels_are_those_of_the_worked_example() {
    let (_folder, server) = server();
    let names = |level| {
        let context = server.registry.context(Caller::new("ada", level).only_modules(["code_executor"]));
        let selection = server.registry.select(&context);
        selection.tools().iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(Permission::Guest), [""; 0]);
    assert_eq!(names(Permission::User), ["code_executor.run_python"]);
    assert_eq!(names(Permission::Admin), ["code_executor.run_python", "code_executor.run_shell"]);
}

#[test]
fn t8_a_python_that_is_none_leaves_only_itself_off() {
    for (python, why) in [
        ("/nowhere/python3", "/nowhere/python3 does not run in the sandbox"),
        ("python3", "`python3` is no absolute path"),
        ("/bin/true", "/bin/true does not run in the sandbox"),
    ] {
        let sandbox = settings().sandbox(launcher()).unwrap();
        let missing = Python::start(sandbox.clone(), Some(Path::new(python))).unwrap_err();
        assert!(missing.contains(why), "{missing}");
        assert!(Shell::start(sandbox, None).is_ok());
    }
}

/// A program that does not know of launchers is started once, and never by itself again.
#[test]
fn t8_a_launcher_that_is_none_leaves_the_tools_off() {
    let folder = tempfile::tempdir().unwrap();
    let endless = folder.path().join("endless");
    fs::write(&endless, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&endless, fs::Permissions::from_mode(0o755)).unwrap();
    for launcher in [Path::new("/bin/true"), Path::new("/bin/cat"), Path::new("/nowhere/toolrack"), &endless]
    {
        let settings = CodeExecutorSettings { timeout_seconds: 1, ..settings() };
        let missing = settings.sandbox(launcher.into()).unwrap_err();
        assert!(missing.message().contains("no sandbox holds on this machine"), "{missing}");
    }
}

#[test]
fn t8_the_launcher_tells_people_that_it_is_not_for_them() {
    for stage in [
        &["sandbox-run"][..],
        &["sandbox-run", "other"],
        &["sandbox-run", "confine"],
        &["sandbox-run", "trial"],
    ] {
        let output = Command::new(launcher()).args(stage).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{stage:?}");
        assert!(!output.stderr.is_empty());
    }
}
