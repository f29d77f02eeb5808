//! What of requests a model server's API cannot say.

use toolrack_apis::Omission;

use crate::logged::Logged;

/// The maximum length of a path in the log, in bytes: names of fields are the client's.
const MAX_PATH: usize = 200;

/// Logs those that are new, by the model and the place without its numbers.
pub(super) fn log(logged: &Logged, model: &str, omissions: &[Omission]) {
    for Omission { path, done } in omissions {
        let path = path.get(..path.floor_char_boundary(MAX_PATH)).unwrap_or_default();
        let mut name = format!("{model} {path}");
        name.retain(|char| !char.is_ascii_digit());
        if logged.first(&name).is_some() {
            tracing::info!(model, path, done, "a part of requests does not reach the model as it was sent");
        }
    }
}
