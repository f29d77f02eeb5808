//! The doctor of a server, which an admin asks for in the console.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indicatif::ProgressBar;
use serde_json::Value;

use super::{Asking, best::Best, look, write::write};
use crate::{
    cli::Settings,
    server::{Examination, ExamineModel},
};

/// For how long a model is asked.
const ALL: Duration = Duration::from_secs(300);

/// Asks the models of these settings.
#[derive(Clone)]
pub(in crate::cli) struct ServedDoctor {
    settings: Arc<Settings>,
    host_tables: Arc<[&'static str]>,
    /// The settings that serve the model best that was asked last.
    best: Arc<Mutex<Option<(Best, String)>>>,
}

impl ServedDoctor {
    pub(in crate::cli) fn new(settings: Settings, host_tables: Vec<&'static str>) -> Self {
        Self { settings: Arc::new(settings), host_tables: host_tables.into(), best: Arc::default() }
    }
}

impl ExamineModel for ServedDoctor {
    fn begin(&self, model: Option<String>) -> Examination {
        let bar = ProgressBar::hidden();
        let (shown, doctor) = (bar.clone(), self.clone());
        let last = || doctor.best.lock().unwrap_or_else(PoisonError::into_inner);
        *last() = None;
        let doctor = self.clone();
        let report = async move {
            let asking =
                Asking { name: model.as_deref(), template: None, all: ALL, bar, stop: Default::default() };
            let looked = look(asking, &doctor.settings).await?;
            if let Some(gone) = looked.gone {
                return Err(format!("the model server went away: {gone}"));
            }
            let report = serde_json::to_value(&looked.report).map_err(|error| error.to_string())?;
            let best = (looked.report.settings, looked.report.model);
            *doctor.best.lock().unwrap_or_else(PoisonError::into_inner) = Some(best);
            Ok::<Value, String>(report)
        };
        Examination { looks_at: Box::new(move || shown.message()), report: Box::pin(report) }
    }

    fn write(&self) -> Result<String, String> {
        let best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        let (best, model) = best.as_ref().ok_or("there is no report; ask a model first")?;
        write(&self.settings, &self.host_tables, best, model)
    }
}
