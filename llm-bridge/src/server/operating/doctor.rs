//! `/api/doctor`: what a model can do with tools, seen by asking it, for the operator. One model is asked at a time.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
};
use parking_lot::MutexGuard;
use registry_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolrack_templates::MAX_SOURCE;

use super::examinations::{Examination, Examinations, Examined, ShownExamination};
use crate::server::{
    App,
    callers::{
        admin::{self, Operator},
        identity::Identity,
    },
    calls::modules::NOT_ADMIN,
    openapi::Operation,
    requests::{
        api_error::ApiError,
        body::{Body, JsonBody},
    },
};

/// Asks models what they can do.
pub trait ExamineModel: Send + Sync {
    /// Begins to ask a model. `docs/doctor.schema.json` describes the report.
    fn begin(&self, asked: ModelToExamine) -> Examination;

    /// Writes the settings that serve the model of the last report best into the configuration file; says what has changed.
    ///
    /// # Errors
    /// When there is no report, or no file that can be written.
    fn write(&self) -> Result<String, String>;
}

/// The doctor of a server. Cheap to clone.
#[derive(Clone)]
pub(in crate::server) struct Doctor {
    examine: Arc<dyn ExamineModel>,
    state: Examinations<String>,
}

impl Doctor {
    pub(in crate::server) fn new(examine: Arc<dyn ExamineModel>) -> Self {
        Self { examine, state: Examinations::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Examined<String>> {
        self.state.lock()
    }
}

/// What is known of the model that is asked, or was asked last.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DoctorState")]
pub(in crate::server) struct Shown {
    /// The model that was named.
    model: Option<String>,
    #[serde(flatten)]
    examination: ShownExamination,
}

impl From<&Examined<String>> for Shown {
    fn from(asked: &Examined<String>) -> Self {
        Self { model: asked.subject.clone(), examination: asked.shown() }
    }
}

/// A model to ask, and how.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelToExamine {
    /// The model's name; by default the one of the settings, or the model server's first.
    #[schemars(length(max = MAX_NAME))]
    pub model: Option<String>,
    /// The source of its chat template for the raw route; by default that of the settings, or the model server's.
    #[schemars(length(max = MAX_SOURCE))]
    pub template: Option<String>,
    /// For how many seconds it is asked at most; by default 300.
    #[schemars(range(min = LEAST_SECONDS, max = MOST_SECONDS))]
    pub seconds: Option<u64>,
}

impl Body for ModelToExamine {
    const EXAMPLE: &str = "`{\"model\": \"qwen3:8b\"}` or `{}`";
}

fn doctor(app: &App) -> Result<&Doctor, ApiError> {
    let missing =
        || ApiError::not_found("doctor_not_found", "this server cannot ask models what they can do");
    app.doctor.as_ref().ok_or_else(missing)
}

/// The longest name of a model, in bytes.
const MAX_NAME: usize = 256;
/// For how long a model may be asked, in seconds.
const LEAST_SECONDS: u64 = 10;
const MOST_SECONDS: u64 = 3600;
pub(crate) const SECONDS: RangeInclusive<u64> = LEAST_SECONDS..=MOST_SECONDS;
const NONE: &str = "This server cannot ask models (`doctor_not_found`).";

pub(in crate::server) fn read_operation() -> Operation {
    Operation::new(Method::GET, "Server", "read_doctor", "What the model that was asked last can do")
        .answers::<Shown>(200, "How far it is, and what was seen.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
}

pub(in crate::server) async fn read(State(app): State<App>, _: Operator) -> Result<Json<Shown>, ApiError> {
    Ok(Json(Shown::from(&*doctor(&app)?.lock())))
}

pub(in crate::server) fn ask_operation() -> Operation {
    Operation::new(Method::POST, "Server", "ask_doctor", "Ask a model what it can do")
        .details("It is asked some dozen short questions. A template is tried on the raw route; where that serves the model best, it is kept in the data folder and named by the settings.")
        .reads::<ModelToExamine>()
        .answers::<Shown>(202, "It is being asked.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
        .refuses(409, "Another model is being asked (`doctor_busy`).")
}

pub(in crate::server) async fn ask(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    _: Operator,
    JsonBody(asked): JsonBody<ModelToExamine>,
) -> Result<(StatusCode, Json<Shown>), ApiError> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let ModelToExamine { model, template, seconds } = asked;
    if model.as_ref().is_some_and(|model| model.len() > MAX_NAME) {
        let message = format!("the name of a model is not longer than {MAX_NAME} bytes");
        return Err(ApiError::invalid("model", message));
    }
    if template.as_ref().is_some_and(|template| template.len() > MAX_SOURCE) {
        return Err(ApiError::invalid("template", format!("a template has at most {MAX_SOURCE} bytes")));
    }
    if seconds.is_some_and(|seconds| !SECONDS.contains(&seconds)) {
        let message = format!("`seconds` goes from {LEAST_SECONDS} to {MOST_SECONDS}");
        return Err(ApiError::invalid("seconds", message));
    }
    let doctor = doctor(&app)?;
    let (model, template) = (given(model), given(template));
    let template_sha256 = template.as_ref().map(|source| format!("{:x}", Sha256::digest(source)));
    let arguments = json!({"model": model, "template_sha256": template_sha256, "seconds": seconds});
    let begin = async {
        Ok::<_, StoreError>({
            let subject = model.clone();
            let begin = || doctor.examine.begin(ModelToExamine { model, template, seconds });
            doctor.state.begin(subject, begin, &app.backend, &app.closing)
        })
    };
    if !admin::change(&identity, "toolrack doctor", arguments, begin).await? {
        let message = "a model is being asked already; wait for its report, or stop it";
        return Err(ApiError::new(StatusCode::CONFLICT, "doctor_busy", message));
    }
    Ok((StatusCode::ACCEPTED, Json(Shown::from(&*doctor.lock()))))
}

pub(in crate::server) fn stop_operation() -> Operation {
    Operation::new(Method::DELETE, "Server", "stop_doctor", "Ask the model no further")
        .answers_nothing(204, "No model is asked any more.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
}

pub(in crate::server) async fn stop(State(app): State<App>, _: Operator) -> Result<StatusCode, ApiError> {
    if let Some(running) = &doctor(&app)?.lock().running {
        running.stop.cancel();
    }
    Ok(StatusCode::NO_CONTENT)
}

/// What was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WrittenSettings")]
pub(in crate::server) struct Written {
    /// The file and what has changed in it.
    written: String,
}

pub(in crate::server) fn write_operation() -> Operation {
    Operation::new(Method::POST, "Server", "write_doctor", "Write the settings that serve the model best")
        .details(
            "They are put under `models` in the configuration file, and hold when the server begins anew.",
        )
        .answers::<Written>(200, "What was written.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
        .refuses(409, "There is no report, or no file to write to (`settings_not_written`).")
}

pub(in crate::server) async fn write(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    _: Operator,
) -> Result<Json<Written>, ApiError> {
    let doctor = doctor(&app)?;
    let model = doctor.lock().report.as_ref().and_then(|report| report.get("model").cloned());
    let examine = Arc::clone(&doctor.examine);
    let write = async {
        let written = tokio::task::spawn_blocking(move || examine.write()).await;
        written.unwrap_or_else(|fault| Err(fault.to_string())).map_err(NotWritten)
    };
    let written = admin::change(&identity, "toolrack doctor --write", json!({"model": model}), write).await?;
    Ok(Json(Written { written }))
}

/// Why settings are not written.
struct NotWritten(String);

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<NotWritten> for ApiError {
    fn from(NotWritten(why): NotWritten) -> Self {
        Self::new(StatusCode::CONFLICT, "settings_not_written", why)
    }
}
