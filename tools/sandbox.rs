//! The sandbox of the code executor, as it is configured.

use std::{path::PathBuf, time::Duration};

use registry_core::prelude::*;
use toolrack_sandbox::{Limits, Sandbox};

pub(crate) const MIB: u64 = 1024 * 1024;

/// The table `[code_executor]` of the configuration.
#[args]
#[derive(Debug, Clone)]
pub struct CodeExecutorSettings {
    /// Whether models may run code at all.
    #[arg(default = false)]
    pub enabled: bool,
    /// The Python to use; by default the system's.
    pub python: Option<PathBuf>,
    /// The shell to use; by default the system's.
    pub shell: Option<PathBuf>,
    /// Files and folders that programs may read beside the system's own.
    #[arg(default = Vec::new())]
    pub readable: Vec<PathBuf>,
    /// How long a program may run, in seconds. The tools' own bound is two minutes, and what goes before and after a run takes its time.
    #[arg(default = Limits::default().time.as_secs(), range = 1..=110)]
    pub timeout_seconds: u64,
    /// How much memory it may take, in MiB.
    #[arg(default = Limits::default().memory / MIB, range = 32..=1_048_576)]
    pub memory_mib: u64,
    /// How many processes and threads it may have at once.
    #[arg(default = Limits::default().processes, range = 1..=4096)]
    pub processes: u64,
    /// How much its files may take, in MiB.
    #[arg(default = Limits::default().disk / MIB, range = 1..=1_048_576)]
    pub disk_mib: u64,
    /// How much of its output is kept, in KiB; more ends it.
    #[arg(default = Limits::default().output / 1024, range = 1..=1024)]
    pub output_kib: u64,
}

/// Where tools run programs that somebody else wrote.
#[resource(
    table = "code_executor",
    needs = "set `enabled = true` under [code_executor] in toolrack.toml",
    timeout = secs(30)
)]
fn sandbox(settings: Settings<CodeExecutorSettings>) -> Result<Option<Sandbox>, ToolError> {
    settings.enabled.then(|| settings.sandbox("/proc/self/exe".into())).transpose()
}

impl Default for CodeExecutorSettings {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            enabled: false,
            python: None,
            shell: None,
            readable: Vec::new(),
            timeout_seconds: limits.time.as_secs(),
            memory_mib: limits.memory / MIB,
            processes: limits.processes,
            disk_mib: limits.disk / MIB,
            output_kib: limits.output / 1024,
        }
    }
}

impl CodeExecutorSettings {
    /// The sandbox with these limits. The launcher is as [`Sandbox::start`] wants it.
    ///
    /// # Errors
    /// When no sandbox holds here.
    pub fn sandbox(&self, launcher: PathBuf) -> Result<Sandbox, ToolError> {
        let limits = Limits {
            time: Duration::from_secs(self.timeout_seconds),
            memory: self.memory_mib.saturating_mul(MIB),
            processes: self.processes,
            disk: self.disk_mib.saturating_mul(MIB),
            output: self.output_kib.saturating_mul(1024),
        };
        let refused = |why| ToolError::unavailable(format!("no sandbox holds on this machine: {why}"));
        Sandbox::start(launcher, limits, self.readable.clone()).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Configuration, Resources};

    use super::*;
    use crate::{Python, Shell};

    async fn with(table: Value) -> Result<Resources, Vec<String>> {
        let tables = Map::from_iter([("code_executor".to_owned(), table)]);
        let configuration =
            Configuration { tables, file: "toolrack.toml".into(), ..Configuration::default() };
        let resources = Resources::new().with_compiled(&configuration).await;
        resources.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn t8_settings_that_cannot_be_meant_are_refused() {
        for (table, expected) in [
            (
                json!({"timeout_seconds": 0}),
                "[code_executor]: `timeout_seconds`: 0 is less than the minimum of 1",
            ),
            (json!({"memory_mib": 1}), "[code_executor]: `memory_mib`: 1 is less than the minimum of 32"),
            (
                json!({"processes": 5000}),
                "[code_executor]: `processes`: 5000 is greater than the maximum of 4096",
            ),
            (json!({"enable": true}), "[code_executor]: there is no `enable`; did you mean `enabled`?"),
        ] {
            assert_eq!(with(table).await.unwrap_err(), [expected], "once, though three resources read it");
        }
    }

    #[tokio::test]
    async fn t8_code_is_not_run_where_nobody_has_said_so() {
        let resources = with(json!({})).await.unwrap();
        let how = "set `enabled = true` under [code_executor] in toolrack.toml";
        let why = resources.get::<Python>(&ToolContext::default()).unwrap_err();
        assert_eq!(why, format!("needs Python: {how}"));
        let why = resources.get::<Shell>(&ToolContext::default()).unwrap_err();
        assert_eq!(why, format!("needs Shell: {how}"));
    }

    #[tokio::test]
    async fn t8_a_launcher_that_is_none_leaves_the_tools_off() {
        // The test program knows nothing of sandboxes.
        let resources = with(json!({"enabled": true})).await.unwrap();
        let why = resources.get::<Python>(&ToolContext::default()).unwrap_err();
        assert!(why.contains("no sandbox holds on this machine"), "{why}");
    }
}
