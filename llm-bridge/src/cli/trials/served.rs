//! Trials of a server, which an admin asks for in the console.

use std::{sync::Arc, time::Duration};

use indicatif::ProgressBar;
use registry_core::{Caller, Registry};

use super::{Model, PATIENCE_SECONDS, Report, ask_all, chosen, last, server_of};
use crate::{
    cli::Settings,
    server::{Examination, TryTool},
    upstream::Upstream,
};

/// Asks the models of these settings.
pub(in crate::cli) struct ServedTrials {
    settings: Arc<Settings>,
    upstream: Upstream,
}

impl ServedTrials {
    pub(in crate::cli) fn new(settings: Settings, upstream: Upstream) -> Self {
        Self { settings: Arc::new(settings), upstream }
    }
}

impl TryTool for ServedTrials {
    fn begin(
        &self,
        registry: &Registry,
        caller: Caller,
        tool: &str,
        tries: u32,
    ) -> Result<Examination, String> {
        let (tools, _) = chosen(&[tool.to_owned()], &caller, registry)?;
        let selection = registry.select(&registry.context(caller.clone()));
        let mut report = Report::new(server_of(&self.upstream), selection.tools().len(), tries);
        let settings = Arc::clone(&self.settings);
        let (chat, patience) = (settings.chat_settings(), Duration::from_secs(PATIENCE_SECONDS));
        let mut model = Model::new(&selection, self.upstream.clone(), chat, caller, patience)?;
        let examples: usize = tools.iter().map(|tool| tool.examples().len()).sum();
        let total = examples * usize::try_from(tries).unwrap_or(1);
        let bar = ProgressBar::hidden();
        let shown = bar.clone();
        let asked = async move {
            ask_all(&mut model, &tools, &mut report, |_| bar.inc(1)).await?;
            report.model = model.name;
            if let Err(cause) = last::compare_and_keep(&settings.data_dir, &mut report) {
                tracing::warn!(cause, "trial_not_kept");
            }
            serde_json::to_value(&report).map_err(|error| error.to_string())
        };
        let looks_at = Box::new(move || format!("{}/{total}", shown.position()));
        Ok(Examination { looks_at, report: Box::pin(asked) })
    }
}
