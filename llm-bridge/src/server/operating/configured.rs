//! `GET /api/settings`: the settings of this server with where each comes from, for the operator.

use axum::{Json, extract::State, http::Method};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::server::{App, callers::admin::Operator, calls::modules::NOT_ADMIN, openapi::Operation};

/// A setting as it holds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Setting")]
pub struct Configured {
    /// Its key in the configuration file, such as `limits.max_rounds`.
    pub key: String,
    /// Its value; `null` where it is not set, or hidden.
    pub value: Value,
    /// Whether it is set and may be a secret, which nobody is shown.
    pub hidden: bool,
    /// Where it comes from.
    pub from: SettingOrigin,
    /// The file with the line, the variable or the option.
    pub place: Option<String>,
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
pub enum SettingOrigin {
    /// The command line.
    #[strum(serialize = "command line")]
    CommandLine,
    /// A variable of the environment.
    #[strum(serialize = "environment")]
    Environment,
    /// The configuration file.
    #[strum(serialize = "file")]
    File,
    /// It is not set, and was found when the server began.
    #[strum(serialize = "found")]
    Found,
    /// It is not set.
    #[strum(serialize = "default")]
    Default,
}

/// The settings.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct SettingList {
    /// By their keys.
    settings: Vec<Configured>,
}

pub(in crate::server) fn operation() -> Operation {
    Operation::new(Method::GET, "Server", "list_settings", "The settings with where each comes from")
        .details("As they were read when the server began. Secrets are left out.")
        .answers::<SettingList>(200, "The settings, by their keys.")
        .refuses(403, NOT_ADMIN)
}

pub(in crate::server) async fn list(State(app): State<App>, _: Operator) -> Json<SettingList> {
    Json(SettingList { settings: app.settings.configured.to_vec() })
}
