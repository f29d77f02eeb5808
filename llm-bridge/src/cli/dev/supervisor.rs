//! Builds, starts, watches, and does so again.

use std::{
    collections::BTreeSet,
    env, fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Arguments, cargo,
    program::{Program, Tools},
    shared::Shared,
    watch::{Changes, Watched, Watcher},
};
use crate::{
    build::Build,
    cli::{Flags, Host, Settings, out::tell, serve},
};

/// How long programs have to end when this one does.
const LAST: Duration = Duration::from_secs(15);
/// Names of tools in one line.
const MAX_NAMES: usize = 8;
/// From so many tools on, and from such a step of a build, it is said what would make it shorter.
const MANY_TOOLS: usize = 300;
const LONG_STEP: Duration = Duration::from_secs(2);

/// Builds, serves, and watches, until a signal comes.
pub(super) struct Supervisor {
    flags: Flags,
    host: Host,
    arguments: Arguments,
    /// The folder it was started in.
    folder: PathBuf,
    /// The name of this program among those that Cargo builds.
    own_name: String,
    settings: Settings,
    address: SocketAddr,
    listener: TcpListener,
    shared: Arc<Shared>,
    watcher: Watcher,
    packages: BTreeSet<PathBuf>,
    /// The newest program that was built, where no build replaces it.
    program: Option<PathBuf>,
    serving: Option<Program>,
    /// Whether the newest sources and settings serve.
    is_current: bool,
    all: TaskTracker,
    stop: CancellationToken,
}

impl Supervisor {
    /// # Errors
    /// When the settings are wrong, or the address cannot be listened on.
    pub(super) async fn new(flags: Flags, host: Host, arguments: Arguments) -> Result<Self, String> {
        let settings = Settings::load(&flags, &host.all_tables()?)?;
        let failed = |error: std::io::Error| error.to_string();
        let listener = serve::listen(settings.listen).await?.into_std().map_err(failed)?;
        let own_name = env::current_exe().map_err(failed)?;
        Ok(Self {
            folder: env::current_dir().map_err(failed)?,
            own_name: own_name.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            address: settings.listen,
            flags,
            host,
            arguments,
            settings,
            listener,
            shared: Arc::new(Shared::new().map_err(failed)?),
            watcher: Watcher::default(),
            packages: Default::default(),
            program: None,
            serving: None,
            is_current: false,
            all: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Runs until a signal comes.
    pub(super) async fn run(mut self) -> ExitCode {
        let signal = CancellationToken::new();
        tokio::spawn(serve::stop_on_signal(signal.clone()));
        signal.run_until_cancelled(self.work()).await;
        self.stop.cancel();
        self.all.close();
        if tokio::time::timeout(LAST, self.all.wait()).await.is_err() {
            tell("A program does not end; it is left running.");
        }
        if let Some(folder) = self.program.as_deref().and_then(Path::parent) {
            let _ = fs::remove_dir_all(folder);
        }
        ExitCode::SUCCESS
    }

    async fn work(&mut self) {
        let mut changes = Changes { files: Vec::new(), of_sources: true, at: SystemTime::now() };
        self.watch(SystemTime::now());
        loop {
            self.take(&changes).await;
            changes = self.next_changes().await;
        }
    }

    /// Waits for the next changes.
    async fn next_changes(&mut self) -> Changes {
        if let Some(serving) = &mut self.serving {
            tokio::select! {
                changes = self.watcher.changes() => return changes,
                status = serving.ended() => tell(format_args!(
                    "The program has ended ({status}). The next saved file starts it again."
                )),
            }
            self.serving = None;
        }
        let changes = self.watcher.changes().await;
        // Without a program, the settings are a reason to build as well.
        Changes { of_sources: changes.of_sources || self.program.is_none(), ..changes }
    }

    /// Builds and starts what the changes make.
    async fn take(&mut self, changes: &Changes) {
        let begun = SystemTime::now();
        let mut steps = vec![("noticed".to_owned(), since(changes.at))];
        if !changes.files.is_empty() {
            tell(format_args!("Saved: {}", named(&self.shown(&changes.files))));
        }
        if changes.of_sources {
            self.state(Build::Building);
            let built = cargo::build(&self.arguments.cargo, &self.own_name).await;
            self.packages.extend(built.packages);
            let libraries = built.libraries;
            let program = match built.program.and_then(|program| self.put_aside(&program, &libraries)) {
                Ok(program) => program,
                Err(message) => {
                    self.watch(begun);
                    self.keep("The build has failed", message);
                    return;
                }
            };
            self.program = Some(program);
            self.watch(begun);
            if built.compiled.is_empty() && self.is_current && self.serving.is_some() {
                self.state(Build::Current);
                return;
            }
            steps.extend(built.compiled);
        }
        if let Err(message) = self.start(changes, steps).await {
            self.keep("The new program does not start", message);
        }
        self.watch(begun);
    }

    /// Starts the newest program and has the one before finish what runs.
    async fn start(&mut self, changes: &Changes, mut steps: Vec<(String, Duration)>) -> Result<(), String> {
        let Some(program) = self.program.clone() else { return Ok(()) };
        let told = |message: String| {
            tell(format_args!("error: {message}"));
            message
        };
        // Which tables there are is known to the newest program: whether the settings are right is for it to say.
        let settings = self.host.all_tables().and_then(|tables| Settings::load(&self.flags, &tables));
        let settings = settings.unwrap_or_else(|_| self.settings.clone());
        if settings.listen != self.address {
            let failed = |error: std::io::Error| error.to_string();
            let listener = serve::listen(settings.listen).await.map_err(told)?.into_std().map_err(failed)?;
            (self.listener, self.address) = (listener, settings.listen);
        }
        self.settings = settings;
        let began = SystemTime::now();
        let before = self.serving.as_ref().map(|serving| &serving.tools);
        let starting = Program::start(&program, before, &self.listener, &self.shared, &self.all, &self.stop);
        let serving = starting.await?;
        self.is_current = true;
        let mut known = Tools::default();
        if let Some(mut before) = self.serving.take() {
            known = std::mem::take(&mut before.tools);
            before.finish().await;
        }
        self.state(Build::Current);
        if !changes.files.is_empty() {
            steps.push(("start".to_owned(), since(began)));
            tell(format_args!("{}", ready(since(changes.at), &steps, &known, &serving.tools)));
            if let Some(hint) = large_crate(&steps, serving.tools.names.len()) {
                tell(format_args!("{hint}"));
            }
        }
        self.serving = Some(serving);
        Ok(())
    }

    /// Says why there is no newer program.
    fn keep(&mut self, what: &str, message: String) {
        self.is_current = false;
        let still = match self.serving {
            Some(_) => "the program before goes on",
            None => "nothing serves yet",
        };
        tell(format_args!("{what}; {still}. The next saved file is tried."));
        self.state(Build::Failed { message });
    }

    fn state(&self, build: Build) {
        self.shared.build.send_replace(build);
    }

    /// Links to the program and the libraries, or copies, in a folder of this process, so that the next build does not replace what
    /// starts.
    fn put_aside(&self, program: &Path, libraries: &[PathBuf]) -> Result<PathBuf, String> {
        let folder = program.with_file_name(format!("dev-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for library in libraries {
            link(library, &folder)?;
        }
        link(program, &folder)
    }

    /// Watches what the newest program is made from. Files that were not watched and were saved later than `since` count as changed.
    fn watch(&mut self, since: SystemTime) {
        let absolute = |path: &Path| self.folder.join(path);
        let file = self.flags.config.as_deref().unwrap_or(Path::new(Settings::DEFAULT_FILE));
        let settings = [absolute(file)].into_iter();
        let settings = settings.chain(self.settings.tool_files().iter().map(|file| absolute(file))).collect();
        let manifests = self
            .folder
            .ancestors()
            .flat_map(|folder| ["Cargo.toml", "Cargo.lock"].into_iter().map(move |name| folder.join(name)));
        let mut files: BTreeSet<PathBuf> = manifests.collect();
        let mut left_out: BTreeSet<PathBuf> = [absolute(&self.settings.data_dir)].into();
        if let Some(program) = &self.program {
            // Beside the program as it was built.
            let built = program
                .parent()
                .and_then(Path::parent)
                .map(|folder| folder.join(program.file_name().unwrap_or_default()));
            files.extend(built.iter().flat_map(|built| cargo::sources(built)));
            left_out.extend(built.as_deref().and_then(Path::parent).map(Path::to_owned));
        }
        // In a workspace the folder itself is no package; its sources are those of its packages.
        let folders =
            if self.packages.is_empty() { [self.folder.clone()].into() } else { self.packages.clone() };
        self.watcher.watch(Watched { folders, files, settings, left_out }, since);
    }

    /// The names of files as the person knows them.
    fn shown(&self, files: &[PathBuf]) -> Vec<String> {
        let name = |file: &PathBuf| file.strip_prefix(&self.folder).unwrap_or(file).display().to_string();
        files.iter().map(name).collect()
    }
}

/// A link to the file in a folder, or a copy.
fn link(file: &Path, folder: &Path) -> Result<PathBuf, String> {
    let linked = folder.join(file.file_name().unwrap_or_default());
    let _ = fs::remove_file(&linked);
    if fs::hard_link(file, &linked).is_err() {
        fs::copy(file, &linked).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(linked)
}

fn since(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or_default()
}

/// How long it took from the save to the first call, what of, and which tools are new, off and gone.
fn ready(took: Duration, steps: &[(String, Duration)], before: &Tools, now: &Tools) -> String {
    let step = |(what, took): &(String, Duration)| format!("{what} {:.1}", took.as_secs_f64());
    let steps: Vec<String> = steps.iter().map(step).collect();
    let is_on = |name: &&String, tools: &Tools| tools.names.contains(*name) && !tools.off.contains_key(*name);
    let new = now.names.iter().filter(|name| is_on(name, now) && !is_on(name, before)).cloned();
    let off = now.off.iter().filter(|(name, why)| before.off.get(*name) != Some(*why));
    let off = off.map(|(name, why)| format!("{name} ({why})"));
    let gone = before.names.iter().filter(|name| !now.names.contains(name)).cloned();
    let mut text = format!("Ready {:.1} s after the save ({} s)", took.as_secs_f64(), steps.join(", "));
    let changed: [(_, Vec<String>); 3] =
        [("new", new.collect()), ("off", off.collect()), ("gone", gone.collect())];
    for (what, names) in changed {
        if !names.is_empty() {
            text.push_str(&format!("; {what}: {}", named(&names)));
        }
    }
    text
}

/// What to do where a save waits for a crate of very many tools.
fn large_crate(steps: &[(String, Duration)], tools: usize) -> Option<String> {
    let (slowest, took) = steps.iter().max_by_key(|(_, took)| *took)?;
    (tools >= MANY_TOOLS && *took >= LONG_STEP).then(|| {
        format!(
            "note: {slowest} took {:.1} s, as the compiler reads all tools of a crate to compile one: in crates of some hundred each a save takes \
             less. `cargo xtask new-crate` begins one",
            took.as_secs_f64()
        )
    })
}

/// Some names in one line.
fn named(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MAX_NAMES) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b18_the_time_from_save_to_call_is_told_with_what_it_went_to() {
        let steps = [
            ("tools".to_owned(), Duration::from_millis(640)),
            ("start".to_owned(), Duration::from_millis(300)),
        ];
        let tools = |names: &[&str], off: &[(&str, &str)]| Tools {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            off: off.iter().map(|&(name, why)| (name.to_owned(), why.to_owned())).collect(),
            faults: Vec::new(),
        };
        let took = Duration::from_millis(2350);
        let text = ready(took, &steps, &tools(&["a", "b"], &[]), &tools(&["b", "c"], &[]));
        assert_eq!(text, "Ready 2.4 s after the save (tools 0.6, start 0.3 s); new: c; gone: a");
        // A tool that cannot be used is no new one, until it can.
        let (none, off) = (tools(&["a"], &[]), tools(&["a", "b"], &[("b", "needs the variable KEY")]));
        let text = |before: &Tools, now: &Tools| ready(took, &[], before, now);
        assert!(text(&none, &off).ends_with("; off: b (needs the variable KEY)"), "{}", text(&none, &off));
        assert!(text(&off, &off).ends_with(" s)"), "{}", text(&off, &off));
        assert!(text(&off, &tools(&["a", "b"], &[])).ends_with("; new: b"));
        let steps = |seconds| {
            [("tools".to_owned(), Duration::from_secs(seconds)), ("start".to_owned(), Duration::from_secs(1))]
        };
        assert_eq!(large_crate(&steps(4), MANY_TOOLS - 1), None);
        assert_eq!(large_crate(&steps(1), MANY_TOOLS), None);
        let hint = large_crate(&steps(4), MANY_TOOLS).unwrap();
        assert!(hint.starts_with("note: tools took 4.0 s, ") && hint.contains("new-crate"), "{hint}");
        let many: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        assert_eq!(named(&many), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
