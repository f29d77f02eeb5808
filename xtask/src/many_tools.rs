//! `cargo xtask many-tools`: how a thousand tools build, start and fill a prompt, beside few of them and beside `rmcp`.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;

use crate::{Result, toolrack};

const USAGE: &str = "usage: cargo xtask many-tools [COUNT], 1000 where nothing is said; 11 to 10000";

/// With how many the others are compared.
const FEW: usize = 10;

/// Starts of a program, whose mean counts.
const STARTS: u32 = 20;

/// A crate whose build script writes as many tools as the variable `TOOLS` says, and a program that lists them.
struct Library {
    name: &'static str,
    package: &'static str,
    manifest: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library { name: "toolrack", package: "thousand", manifest: "fixtures/Cargo.toml" },
    Library { name: "rmcp", package: "thousand_rmcp", manifest: "fixtures/thousand_rmcp/Cargo.toml" },
];

/// What was seen of a library.
struct Seen {
    /// A build with few tools, and one with many; what they depend on was built before. The time of all processors, where the
    /// system tells it.
    build: [Duration; 2],
    /// A build after one tool of many was changed.
    rebuild: Duration,
    /// From the start of the program until it has listed them and ended, with few and with many.
    start: [Duration; 2],
}

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let count = match arguments {
        [] => 1000,
        [count] => count.parse().ok().filter(|count| (FEW + 1..=10_000).contains(count)).ok_or(USAGE)?,
        _ => return Err(USAGE.to_owned()),
    };
    let folder = toolrack::target_folder(root)?;
    let [ours, theirs] = &LIBRARIES;
    let ours = ours.measure(root, &folder, count)?;
    let prompt = prompt(&folder)?;
    let theirs = theirs.measure(root, &folder, count)?;
    println!(
        "| | {FEW} tools | {count} tools | rmcp, {FEW} | rmcp, {count} | of rmcp |\n|---|--:|--:|--:|--:|--:|"
    );
    let row = |what: &str, ours: [Option<Duration>; 2], theirs: [Option<Duration>; 2]| {
        let shown = |time: Option<Duration>| time.map_or_else(String::new, shown);
        let part = match (ours, theirs) {
            ([_, Some(ours)], [_, Some(theirs)]) => {
                format!("{:.2}", ours.as_secs_f64() / theirs.as_secs_f64())
            }
            _ => String::new(),
        };
        let [a, b, c, d] = [ours, theirs].concat().try_into().unwrap_or_default();
        println!("| {what} | {} | {} | {} | {} | {part} |", shown(a), shown(b), shown(c), shown(d));
    };
    row("build", ours.build.map(Some), theirs.build.map(Some));
    row("build after one tool was changed", [None, Some(ours.rebuild)], [None, Some(theirs.rebuild)]);
    row("start until all are listed", ours.start.map(Some), theirs.start.map(Some));
    println!("\n{prompt}");
    Ok(ExitCode::SUCCESS)
}

impl Library {
    fn measure(&self, root: &Path, folder: &Path, count: usize) -> Result<Seen> {
        // What they depend on is built with the first.
        self.build(root, folder, 1)?;
        let few = self.build(root, folder, FEW)?;
        let few_start = self.start(folder)?;
        let many = self.build(root, folder, count)?;
        let many_start = self.start(folder)?;
        self.change_one(folder)?;
        let rebuild = self.build(root, folder, count)?;
        Ok(Seen { build: [few, many], rebuild, start: [few_start, many_start] })
    }

    fn build(&self, root: &Path, folder: &Path, count: usize) -> Result<Duration> {
        eprintln!("building {count} tools with {}", self.name);
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let (started, before) = (Instant::now(), processor_time());
        let status = Command::new(cargo)
            .args(["build", "--quiet", "--package", self.package, "--manifest-path"])
            .arg(root.join(self.manifest))
            .arg("--target-dir")
            .arg(folder)
            .env("TOOLS", count.to_string())
            // As a developer's own build goes, whatever is set for this one.
            .env_remove("CARGO_INCREMENTAL")
            .status()
            .map_err(|error| format!("cannot run cargo: {error}"))?;
        let took = worked_since(started, before);
        if status.success() { Ok(took) } else { Err(format!("{} cannot be built", self.package)) }
    }

    /// The mean of several starts.
    fn start(&self, folder: &Path) -> Result<Duration> {
        let program = program(folder, self.package);
        let (started, before) = (Instant::now(), processor_time());
        for _ in 0..STARTS {
            let status = Command::new(&program).stdout(Stdio::null()).status();
            let status = status.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
            if !status.success() {
                return Err(format!("{} ended with {status}", program.display()));
            }
        }
        Ok(worked_since(started, before) / STARTS)
    }

    /// Adds a statement to the first tool, where the build script wrote it.
    fn change_one(&self, folder: &Path) -> Result {
        let file = self.newest_output(folder)?;
        let reported = |error: std::io::Error| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(reported)?;
        let changed = text.replacen("Ok(format!(\"0", "let _ = 1;\n    Ok(format!(\"0", 1);
        if changed == text {
            return Err(format!("{} is not as this command knows it", file.display()));
        }
        fs::write(&file, changed).map_err(reported)
    }

    /// The file with the first tool: of its own, or of all.
    fn newest_output(&self, folder: &Path) -> Result<PathBuf> {
        let builds = folder.join("debug/build");
        let entries = fs::read_dir(&builds).map_err(|error| format!("{}: {error}", builds.display()))?;
        let files = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            let (package, _) = name.to_str()?.rsplit_once('-')?;
            let out = entry.path().join("out");
            let file =
                [out.join("tool_0000.rs"), out.join("tools.rs")].into_iter().find(|file| file.is_file())?;
            let written: SystemTime = file.metadata().ok()?.modified().ok()?;
            (package == self.package).then_some((written, file))
        });
        let newest = files.max_by_key(|(written, _)| *written);
        newest.map(|(_, file)| file).ok_or_else(|| format!("no tools in {}", builds.display()))
    }
}

fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join("debug").join(name).with_extension(env::consts::EXE_EXTENSION)
}

fn shown(time: Duration) -> String {
    if time.as_secs() > 0 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} ms", time.as_millis())
    }
}

/// What the tools take in a prompt.
fn prompt(folder: &Path) -> Result<String> {
    let program = program(folder, "thousand");
    let output = Command::new(&program).arg(OsStr::new("prompt")).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let facts: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{}: {error}", program.display()))?;
    let fact =
        |name: &str| facts.get(name).and_then(Value::as_u64).ok_or_else(|| format!("no `{name}` in {facts}"));
    // As `list-tools` counts.
    let tokens = |name: &str| fact(name).map(|bytes| bytes.div_ceil(4));
    let (all, deferred, found) = (tokens("bytes")?, tokens("bytes_deferred")?, tokens("bytes_found")?);
    let mut text = format!(
        "In a prompt: {all} tokens; all deferred {deferred}, and {} after a search that found {} ({:.1} % of all).",
        deferred + found,
        fact("found")?,
        (deferred + found) as f64 * 100.0 / all.max(1) as f64
    );
    if let Ok(peak) = fact("peak_kib") {
        text.push_str(&format!(
            " Memory at most: {:.1} MiB, with two registries and every schema made.",
            peak as f64 / 1024.0
        ));
    }
    Ok(text)
}

/// How long processors have worked for the programs that were started here, where Linux tells: what else the machine does counts
/// less in it than in the time on the clock. See proc_pid_stat(5): `cutime` and `cstime`, in hundredths of a second.
fn processor_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let hundredths = fields.split_whitespace().skip(13).take(2).map(str::parse::<u64>);
    Some(Duration::from_millis(hundredths.sum::<std::result::Result<u64, _>>().ok()? * 10))
}

/// The time of the processors since then, or that of the clock.
fn worked_since(started: Instant, before: Option<Duration>) -> Duration {
    let worked = processor_time().zip(before).map(|(after, before)| after.saturating_sub(before));
    worked.unwrap_or_else(|| started.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_a_count_that_cannot_be_is_refused() {
        for arguments in [&["ten"][..], &["10"], &["10001"], &["-1"], &["20", "30"]] {
            let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            assert!(run(Path::new("nowhere"), &arguments).unwrap_err().contains("usage"), "{arguments:?}");
        }
    }
}
