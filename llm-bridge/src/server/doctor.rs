//! `/api/doctor`: what a model can do with tools, seen by asking it, for the operator. One model is asked at a time.

use std::{fmt, sync::Arc};

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

use super::{
    App,
    admin::{self, Operator},
    api_error::ApiError,
    body::{Body, JsonBody},
    examinations::{Examination, Examinations, Examined, ShownExamination},
    identity::Identity,
    modules::NOT_ADMIN,
    openapi::Operation,
};

/// Asks models what they can do.
pub trait ExamineModel: Send + Sync {
    /// Begins to ask a model, by default the one of the settings. `docs/doctor.schema.json` describes the report.
    fn begin(&self, model: Option<String>) -> Examination;

    /// Writes the settings that serve the model of the last report best into the configuration file; says what has changed.
    ///
    /// # Errors
    /// When there is no report, or no file that can be written.
    fn write(&self) -> Result<String, String>;
}

/// The doctor of a server. Cheap to clone.
#[derive(Clone)]
pub(super) struct Doctor {
    examine: Arc<dyn ExamineModel>,
    state: Examinations<String>,
}

impl Doctor {
    pub(super) fn new(examine: Arc<dyn ExamineModel>) -> Self {
        Self { examine, state: Examinations::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Examined<String>> {
        self.state.lock()
    }
}

/// What is known of the model that is asked, or was asked last.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DoctorState")]
pub(super) struct Shown {
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

/// A model to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelToExamine")]
pub(super) struct ModelToAsk {
    /// The model's name; by default the one of the settings, or the model server's first.
    #[serde(default)]
    #[schemars(length(max = MAX_NAME))]
    model: Option<String>,
}

impl Body for ModelToAsk {
    const EXAMPLE: &str = "`{\"model\": \"qwen3:8b\"}` or `{}`";
}

fn doctor(app: &App) -> Result<&Doctor, ApiError> {
    let missing =
        || ApiError::not_found("doctor_not_found", "this server cannot ask models what they can do");
    app.doctor.as_ref().ok_or_else(missing)
}

/// The longest name of a model, in bytes.
const MAX_NAME: usize = 256;
const NONE: &str = "This server cannot ask models (`doctor_not_found`).";

pub(super) fn read_operation() -> Operation {
    Operation::new(Method::GET, "Server", "read_doctor", "What the model that was asked last can do")
        .answers::<Shown>(200, "How far it is, and what was seen.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
}

pub(super) async fn read(State(app): State<App>, _: Operator) -> Result<Json<Shown>, ApiError> {
    Ok(Json(Shown::from(&*doctor(&app)?.lock())))
}

pub(super) fn ask_operation() -> Operation {
    Operation::new(Method::POST, "Server", "ask_doctor", "Ask a model what it can do")
        .details("It takes up to five minutes, in which the model is asked some dozen short questions.")
        .reads::<ModelToAsk>()
        .answers::<Shown>(202, "It is being asked.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
        .refuses(409, "Another model is being asked (`doctor_busy`).")
}

pub(super) async fn ask(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    _: Operator,
    JsonBody(ModelToAsk { model }): JsonBody<ModelToAsk>,
) -> Result<(StatusCode, Json<Shown>), ApiError> {
    if model.as_ref().is_some_and(|model| model.len() > MAX_NAME) {
        let message = format!("the name of a model is not longer than {MAX_NAME} bytes");
        return Err(ApiError::invalid("model", message));
    }
    let doctor = doctor(&app)?;
    let arguments = json!({"model": model});
    let model = model.filter(|model| !model.is_empty());
    let begin = async {
        Ok::<_, StoreError>({
            let begin = || doctor.examine.begin(model.clone());
            doctor.state.begin(model.clone(), begin, &app.backend, &app.closing)
        })
    };
    if !admin::change(&identity, "toolrack doctor", arguments, begin).await? {
        let message = "a model is being asked already; wait for its report, or stop it";
        return Err(ApiError::new(StatusCode::CONFLICT, "doctor_busy", message));
    }
    Ok((StatusCode::ACCEPTED, Json(Shown::from(&*doctor.lock()))))
}

pub(super) fn stop_operation() -> Operation {
    Operation::new(Method::DELETE, "Server", "stop_doctor", "Ask the model no further")
        .answers_nothing(204, "No model is asked any more.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
}

pub(super) async fn stop(State(app): State<App>, _: Operator) -> Result<StatusCode, ApiError> {
    if let Some(running) = &doctor(&app)?.lock().running {
        running.stop.cancel();
    }
    Ok(StatusCode::NO_CONTENT)
}

/// What was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WrittenSettings")]
pub(super) struct Written {
    /// The file and what has changed in it.
    written: String,
}

pub(super) fn write_operation() -> Operation {
    Operation::new(Method::POST, "Server", "write_doctor", "Write the settings that serve the model best")
        .details(
            "They are put under `models` in the configuration file, and hold when the server begins anew.",
        )
        .answers::<Written>(200, "What was written.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, NONE)
        .refuses(409, "There is no report, or no file to write to (`settings_not_written`).")
}

pub(super) async fn write(
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
