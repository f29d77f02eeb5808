//! `cargo xtask many-tools`: how a thousand tools build, start and fill a prompt, beside few of them and beside `rmcp` and `tools-rs`.

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

const OURS: Library = Library { name: "toolrack", package: "thousand", manifest: "fixtures/Cargo.toml" };

const OTHERS: [Library; 2] = [
    Library { name: "rmcp", package: "thousand_rmcp", manifest: "fixtures/thousand_rmcp/Cargo.toml" },
    Library {
        name: "tools-rs",
        package: "thousand_tools_rs",
        manifest: "fixtures/thousand_tools_rs/Cargo.toml",
    },
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
    let mut all = vec![OURS.measure(root, &folder, count)?];
    let prompt = prompt(&folder)?;
    for library in &OTHERS {
        all.push(library.measure(root, &folder, count)?);
    }
    print!("{}", table(&all, count));
    println!("\n{prompt}");
    Ok(ExitCode::SUCCESS)
}

/// A row for each thing that was measured: the times of every library, and the part that ours takes of each other's.
fn table(all: &[Seen], count: usize) -> String {
    let names = [&OURS].into_iter().chain(&OTHERS).map(|library| library.name);
    let times: String = names.map(|name| format!(" {name}, {FEW} | {name}, {count} |")).collect();
    let parts: String = OTHERS.iter().map(|library| format!(" of {} |", library.name)).collect();
    let columns = all.len() * 2 + OTHERS.len();
    let mut text = format!("| |{times}{parts}\n|---|{}\n", "--:|".repeat(columns));
    let mut row = |what: &str, times: &dyn Fn(&Seen) -> [Option<Duration>; 2]| {
        let cells = all.iter().flat_map(times).map(|time| time.map(shown).unwrap_or_default());
        let many: Vec<f64> =
            all.iter().filter_map(|seen| times(seen)[1]).map(|time| time.as_secs_f64()).collect();
        let ours = many.first().copied().unwrap_or_default();
        let parts = many.iter().skip(1).map(|theirs| format!("{:.2}", ours / theirs));
        let cells: String = cells.chain(parts).map(|cell| format!(" {cell} |")).collect();
        text.push_str(&format!("| {what} |{cells}\n"));
    };
    row("build", &|seen| seen.build.map(Some));
    row("build after one tool was changed", &|seen| [None, Some(seen.rebuild)]);
    row("start until all are listed", &|seen| seen.start.map(Some));
    text
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

    /// Changes what the first tool does, where the build script wrote it.
    fn change_one(&self, folder: &Path) -> Result {
        let file = self.newest_output(folder)?;
        let reported = |error: std::io::Error| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(reported)?;
        let changed = text.replacen("times as usize", "times as usize + 1", 1);
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
    fn b11_each_other_library_has_its_times_and_the_part_of_them_that_ours_takes() {
        let seen = |factor: u64| {
            let time = |seconds: u64| Duration::from_secs(seconds * factor);
            Seen { build: [time(1), time(8)], rebuild: time(4), start: [time(1), time(2)] }
        };
        let table = table(&[seen(1), seen(2), seen(4)], 300);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[0],
            "| | toolrack, 10 | toolrack, 300 | rmcp, 10 | rmcp, 300 | tools-rs, 10 | tools-rs, 300 | of rmcp | of tools-rs |"
        );
        assert_eq!(lines[2], "| build | 1.0 s | 8.0 s | 2.0 s | 16.0 s | 4.0 s | 32.0 s | 0.50 | 0.25 |");
        assert_eq!(
            lines[3],
            "| build after one tool was changed |  | 4.0 s |  | 8.0 s |  | 16.0 s | 0.50 | 0.25 |"
        );
        assert!(
            lines.iter().all(|line| line.matches('|').count() == lines[0].matches('|').count()),
            "{table}"
        );
    }

    #[test]
    fn b11_a_count_that_cannot_be_is_refused() {
        for arguments in [&["ten"][..], &["10"], &["10001"], &["-1"], &["20", "30"]] {
            let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            assert!(run(Path::new("nowhere"), &arguments).unwrap_err().contains("usage"), "{arguments:?}");
        }
    }
}
