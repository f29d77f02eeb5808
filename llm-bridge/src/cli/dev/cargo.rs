//! Builds the program with Cargo.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use registry_core::text::plain_path;
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::Command,
};

use crate::cli::out::tell;

/// How much of what went wrong is kept for the page, in bytes.
const MAX_REPORT: usize = 256 << 10;

/// What a build has brought.
#[derive(Debug)]
pub(super) struct Build {
    /// The program, or why there is none, in the colours of a terminal.
    pub(super) program: Result<PathBuf, String>,
    /// The dynamic libraries that the program may link.
    pub(super) libraries: Vec<PathBuf>,
    /// What was compiled, with the time since the one before.
    pub(super) compiled: Vec<(String, Duration)>,
    /// The folders of the packages that were built here.
    pub(super) packages: BTreeSet<PathBuf>,
}

impl Build {
    fn failed(why: String) -> Self {
        Self { program: Err(why), libraries: Vec::new(), compiled: Vec::new(), packages: BTreeSet::new() }
    }
}

/// A line of Cargo's: <https://doc.rust-lang.org/cargo/reference/external-tools.html>.
#[derive(Debug, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Line {
    CompilerArtifact {
        package_id: String,
        manifest_path: PathBuf,
        target: Target,
        filenames: Vec<PathBuf>,
        executable: Option<PathBuf>,
        fresh: bool,
    },
    CompilerMessage {
        package_id: String,
        manifest_path: PathBuf,
        message: Message,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Message {
    level: String,
    rendered: Option<String>,
    #[serde(default)]
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<Message>,
}

/// A place in a source file.
#[derive(Debug, Deserialize)]
struct Span {
    file_name: String,
}

impl Message {
    /// What rustc shows, with the paths of files as people write them.
    fn shown(&self) -> Option<String> {
        let mut shown = self.rendered.clone()?;
        let spans = self.spans.iter().chain(self.children.iter().flat_map(|child| &child.spans));
        for Span { file_name } in spans.filter(|span| span.file_name.contains("..")) {
            shown = shown.replace(file_name, &plain_path(file_name));
        }
        Some(shown)
    }
}

/// Builds, and shows what the compiler says. `own_name` is the program to take where there are several.
pub(super) async fn build(arguments: &[OsString], own_name: &str) -> Build {
    match run(arguments, own_name).await {
        Ok(build) => build,
        Err(error) => {
            let cargo = cargo();
            let message = format!("cannot run {}: {error}", cargo.display());
            tell(format_args!("error: {message}"));
            Build::failed(message)
        }
    }
}

async fn run(arguments: &[OsString], own_name: &str) -> io::Result<Build> {
    let started = Instant::now();
    let mut command = Command::new(cargo());
    command.args(["build", "--message-format=json-diagnostic-rendered-ansi"]).args(arguments);
    // What Cargo has set for this program would make build scripts that watch it run again.
    for (name, _) in env::vars_os() {
        let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if name.to_str().is_some_and(|name| about_us.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    if io::stderr().is_terminal() && env::var_os("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let command =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut cargo = command.spawn()?;
    let said = cargo.stderr.take().map(|said| tokio::spawn(pass_on(said)));
    let mut build = Building {
        own_name,
        last: started,
        programs: Vec::new(),
        errors: String::new(),
        build: Build::failed(String::new()),
    };
    if let Some(out) = cargo.stdout.take() {
        let mut lines = BufReader::new(out).lines();
        while let Some(line) = lines.next_line().await? {
            // Build scripts of tools may print lines of their own.
            if let Ok(line) = serde_json::from_str(&line) {
                build.take(line);
            }
        }
    }
    let status = cargo.wait().await?;
    let said = match said {
        Some(said) => said.await.unwrap_or_default(),
        None => String::new(),
    };
    Ok(build.finish(status.success(), said))
}

/// The Cargo that runs this program, or the usual one.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

struct Building<'a> {
    own_name: &'a str,
    /// When the last unit was compiled.
    last: Instant,
    programs: Vec<(String, PathBuf)>,
    errors: String,
    build: Build,
}

impl Building<'_> {
    fn take(&mut self, line: Line) {
        match line {
            Line::CompilerArtifact { package_id, manifest_path, target, filenames, executable, fresh } => {
                self.note_package(&package_id, &manifest_path);
                if !fresh {
                    let took = self.last.elapsed();
                    self.last += took;
                    self.build.compiled.push((target.name.clone(), took));
                }
                let is = |kind: &str| target.kind.iter().any(|other| other == kind);
                if is("dylib") {
                    self.build.libraries.extend(filenames);
                }
                if let Some(executable) = executable.filter(|_| is("bin")) {
                    self.programs.push((target.name, executable));
                }
            }
            Line::CompilerMessage { package_id, manifest_path, message } => {
                self.note_package(&package_id, &manifest_path);
                let Some(rendered) = message.shown() else { return };
                show(&rendered);
                if message.level == "error" && self.errors.len() < MAX_REPORT {
                    self.errors.push_str(&rendered);
                }
            }
            Line::Other => {}
        }
    }

    fn note_package(&mut self, id: &str, manifest: &Path) {
        if id.starts_with("path+")
            && let Some(folder) = manifest.parent()
        {
            self.build.packages.insert(folder.to_owned());
        }
    }

    fn finish(self, succeeded: bool, said: String) -> Build {
        let Self { own_name, mut programs, errors, mut build, .. } = self;
        build.program = if succeeded {
            if programs.len() > 1 {
                programs.retain(|(name, _)| name == own_name);
            }
            match programs.pop() {
                Some((_, program)) => Ok(program),
                None => {
                    let message = format!(
                        "`cargo build` builds no program, or several and none named `{own_name}`; name one: `dev -- --bin NAME`"
                    );
                    tell(format_args!("error: {message}"));
                    Err(message)
                }
            }
        } else if errors.is_empty() {
            // Cargo itself: a manifest, a dependency, the linker's script.
            Err(if said.is_empty() { "cargo failed without a word".to_owned() } else { said })
        } else {
            Err(errors)
        };
        build
    }
}

/// Shows what a compiler says, with its colours where there is a terminal.
fn show(text: &str) {
    let mut out = io::stderr().lock();
    let _ = match out.is_terminal() {
        true => out.write_all(text.as_bytes()),
        false => write!(out, "{}", anstream::adapter::strip_str(text)),
    };
}

/// Passes on what Cargo says, and gives it back.
async fn pass_on(mut said: impl AsyncRead + Unpin) -> String {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 4096]);
    while let Ok(length @ 1..) = said.read(&mut buffer).await {
        let part = buffer.get(..length).unwrap_or_default();
        let _ = io::stderr().write_all(part);
        if kept.len() < MAX_REPORT {
            kept.extend_from_slice(part);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// The files from which a program was built, as Cargo lists them beside it.
pub(super) fn sources(program: &Path) -> BTreeSet<PathBuf> {
    let list = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let Some((_, files)) = list.split_once(": ") else { return BTreeSet::new() };
    // A space in a name stands behind a backslash.
    let files = files.trim_end().replace("\\ ", "\0");
    files.split(' ').filter(|file| !file.is_empty()).map(|file| file.replace('\0', " ").into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(lines: &[&str], succeeded: bool, said: &str) -> Build {
        let (last, programs, errors) = (Instant::now(), Vec::new(), String::new());
        let mut building =
            Building { own_name: "mine", last, programs, errors, build: Build::failed(String::new()) };
        lines.iter().for_each(|line| building.take(serde_json::from_str(line).unwrap()));
        building.finish(succeeded, said.to_owned())
    }

    fn artifact(package: &str, name: &str, kind: &str, executable: Option<&str>, fresh: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact", "package_id": format!("{package}#1.0.0"),
            "manifest_path": format!("/w/{name}/Cargo.toml"), "target": {"name": name, "kind": [kind], "edition": "2024"},
            "executable": executable, "fresh": fresh, "filenames": [format!("/t/lib{name}.so")],
        })
        .to_string()
    }

    #[test]
    fn b18_a_build_gives_the_program_what_was_compiled_and_where_its_sources_are() {
        let lines = [
            artifact("registry+https://x/serde", "serde", "lib", None, true),
            artifact("path+file:///w/tools", "tools", "lib", None, false),
            artifact("path+file:///w/bridge", "bridge", "dylib", None, true),
            artifact("path+file:///w/other", "other", "bin", Some("/t/other"), true),
            artifact("path+file:///w/mine", "mine", "bin", Some("/t/mine"), false),
            r#"{"reason": "build-script-executed", "package_id": "x"}"#.to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let build = built(&lines, true, "");
        assert_eq!(build.program.unwrap(), Path::new("/t/mine"));
        let names: Vec<&str> = build.compiled.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["tools", "mine"]);
        assert_eq!(build.libraries, [Path::new("/t/libbridge.so")]);
        assert!(
            build.packages.contains(Path::new("/w/tools")) && !build.packages.contains(Path::new("/w/serde"))
        );
        // One program is the one, whatever its name.
        assert_eq!(built(&lines[3..4], true, "").program.unwrap(), Path::new("/t/other"));
        let none = built(&lines[..3], true, "").program.unwrap_err();
        assert!(none.contains("dev -- --bin NAME"), "{none}");
    }

    #[test]
    fn b18_a_failed_build_gives_the_errors_whole_or_what_cargo_says() {
        let message = |level: &str, text: &str| {
            serde_json::json!({
                "reason": "compiler-message", "package_id": "path+file:///w/tools#1.0.0",
                "manifest_path": "/w/tools/Cargo.toml", "message": {"level": level, "rendered": text},
            })
            .to_string()
        };
        let lines = [message("warning", "unused\n"), message("error", "\u{1b}[31mno such type\u{1b}[0m\n")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let build = built(&lines, false, "error: could not compile");
        assert_eq!(build.program.unwrap_err(), "\u{1b}[31mno such type\u{1b}[0m\n");
        assert!(build.packages.contains(Path::new("/w/tools")));
        assert_eq!(
            built(&[], false, "error: no matching package").program.unwrap_err(),
            "error: no matching package"
        );
    }

    #[test]
    fn b18_files_are_named_as_people_write_them() {
        let line = serde_json::json!({
            "reason": "compiler-message", "package_id": "path+file:///w/shop#1.0.0", "manifest_path": "/w/shop/Cargo.toml",
            "message": {
                "level": "error", "rendered": " --> shop/src/../tools/a.rs:3:1\n ::: ../b.rs:1:1\n ::: src/../tools/c.rs:2:2\nin a/../b",
                "spans": [{"file_name": "shop/src/../tools/a.rs"}, {"file_name": "../b.rs"}],
                "children": [{"level": "note", "rendered": null, "spans": [{"file_name": "src/../tools/c.rs"}]}],
            },
        });
        let said = built(&[&line.to_string()], false, "").program.unwrap_err();
        assert_eq!(said, " --> shop/tools/a.rs:3:1\n ::: ../b.rs:1:1\n ::: tools/c.rs:2:2\nin a/../b");
    }

    #[test]
    fn b18_sources_are_read_with_spaces_in_their_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.d"), "/t/mine: /w/my\\ tools/a.rs /w/b.md\n").unwrap();
        let sources = sources(&folder.path().join("mine"));
        assert_eq!(sources, ["/w/my tools/a.rs".into(), "/w/b.md".into()].into());
    }
}
