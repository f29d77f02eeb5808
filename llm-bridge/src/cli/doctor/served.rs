//! The doctor of a server, which an admin asks for in the console.

use std::{io::Write, sync::Arc, time::Duration};

use indicatif::ProgressBar;
use parking_lot::Mutex;
use registry_core::private::private_folder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::{Asking, best::Best, look, report::Report, write::write};
use crate::{
    cli::Settings,
    server::{Examination, ExamineModel, ModelToExamine},
};

/// For how long a model is asked where nothing else is said.
const ALL: Duration = Duration::from_secs(300);

/// Asks the models of these settings.
#[derive(Clone)]
pub(in crate::cli) struct ServedDoctor {
    settings: Arc<Settings>,
    host_tables: Arc<[&'static str]>,
    /// The settings that serve the model best that was asked last.
    best: Arc<Mutex<Option<(Best, String)>>>,
    all: Duration,
}

impl ServedDoctor {
    pub(in crate::cli) fn new(settings: Settings, host_tables: Vec<&'static str>) -> Self {
        Self { settings: Arc::new(settings), host_tables: host_tables.into(), best: Arc::default(), all: ALL }
    }
}

impl ExamineModel for ServedDoctor {
    fn begin(&self, ModelToExamine { model, template: source, seconds }: ModelToExamine) -> Examination {
        let bar = ProgressBar::hidden();
        let (shown, doctor) = (bar.clone(), self.clone());
        let last = || doctor.best.lock();
        *last() = None;
        let doctor = self.clone();
        let report = async move {
            let given = source.map(|source| GivenTemplate::new(&doctor.settings, &source)).transpose()?;
            let asking = Asking {
                name: model.as_deref(),
                template: given.as_ref().map(|given| given.file.path().to_owned()),
                all: seconds.map_or(doctor.all, Duration::from_secs),
                bar,
                stop: Default::default(),
            };
            let mut looked = look(asking, &doctor.settings).await?;
            if let Some(gone) = looked.gone {
                return Err(format!("the model server went away: {gone}"));
            }
            if let Some(given) = given {
                given.keep(&mut looked.report)?;
            }
            let report = serde_json::to_value(&looked.report).map_err(|error| error.to_string())?;
            let best = (looked.report.settings, looked.report.model);
            *doctor.best.lock() = Some(best);
            Ok::<Value, String>(report)
        };
        Examination { looks_at: Box::new(move || shown.message()), report: Box::pin(report) }
    }

    fn write(&self) -> Result<String, String> {
        let best = self.best.lock();
        let (best, model) = best.as_ref().ok_or("there is no report; ask a model first")?;
        write(&self.settings, &self.host_tables, best, model)
    }
}

/// A template that was sent, in a file of the data folder.
struct GivenTemplate {
    file: NamedTempFile,
    /// What it is called where it stays: the same text twice is one file.
    name: String,
}

impl GivenTemplate {
    fn new(settings: &Settings, source: &str) -> Result<Self, String> {
        // The configuration that names it may be read from elsewhere.
        let written = std::path::absolute(settings.data_dir.join("templates")).and_then(|folder| {
            private_folder(&folder)?;
            let mut file = tempfile::Builder::new().suffix(".jinja").tempfile_in(folder)?;
            file.write_all(source.as_bytes())?;
            Ok(file)
        });
        let file = written.map_err(|error| format!("the template cannot be kept: {error}"))?;
        Ok(Self { file, name: format!("{:.16x}.jinja", Sha256::digest(source)) })
    }

    /// Leaves it where the settings that serve the model best name it; otherwise it is removed.
    fn keep(self, report: &mut Report) -> Result<(), String> {
        let best = &mut report.settings;
        if best.template.as_deref() != Some(self.file.path()) {
            return Ok(());
        }
        let place = self.file.path().with_file_name(self.name);
        self.file.persist(&place).map_err(|error| format!("the template cannot be kept: {error}"))?;
        best.template = Some(place);
        report.toml = best.toml(&report.model);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        Json, Router,
        extract::State,
        routing::{get, post},
    };
    use serde_json::json;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn u29_a_model_that_answers_no_more_is_asked_for_so_long_and_no_longer() {
        // It answers the first question alone.
        let answers = Arc::new(Semaphore::new(1));
        let answer = async |State(answers): State<Arc<Semaphore>>, Json(asked): Json<Value>| {
            answers.acquire().await.unwrap().forget();
            let text = json!({"role": "assistant", "content": "1 2 3"});
            let choice = match asked["stream"] == true {
                true => json!({"index": 0, "delta": text, "finish_reason": "stop"}),
                false => json!({"index": 0, "message": text, "finish_reason": "stop"}),
            };
            let answer = json!({"object": "chat.completion", "model": "m", "choices": [choice]});
            let (kind, text) = match asked["stream"] == true {
                true => ("text/event-stream", format!("data: {answer}\n\ndata: [DONE]\n\n")),
                false => ("application/json", answer.to_string()),
            };
            ([("content-type", kind)], text)
        };
        let models = json!({"object": "list", "data": [{"id": "m", "object": "model"}]});
        let app = Router::new()
            .route("/v1/models", get(|| async { Json(models) }))
            .route("/v1/chat/completions", post(answer))
            .with_state(answers);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = format!("upstream = \"http://{}/v1\"", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let settings = Settings::from_toml(&text, &[]).unwrap();
        let doctor = ServedDoctor::new(settings, Vec::new());
        assert_eq!(doctor.all, ALL);
        let doctor = ServedDoctor { all: Duration::from_secs(2), ..doctor };
        let report = doctor.begin(ModelToExamine::default()).report;
        let report =
            tokio::time::timeout(Duration::from_secs(60), report).await.expect("it goes on").unwrap();
        // With what was seen by then.
        assert_eq!(report["model"], "m", "{report}");
        assert!(
            report["seconds"].as_f64().unwrap() < 20.0 && report.to_string().contains("no time"),
            "{report}"
        );
    }
}
