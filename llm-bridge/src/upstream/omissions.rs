//! What of requests a model server's API cannot say.

use toolrack_apis::Omission;

use crate::logged::Logged;

/// The maximum length of a path or a model's name in the log, in bytes: both are the client's.
const MAX_NAME: usize = 200;

/// Logs those that are new, by the model and the place without its numbers.
pub(super) fn log(logged: &Logged, model: &str, omissions: &[Omission]) {
    let model = cut(model);
    for Omission { path, done } in omissions {
        let path = cut(path);
        let mut name = format!("{model} {path}");
        name.retain(|char| !char.is_ascii_digit());
        if logged.first(&name).is_some() {
            tracing::info!(model, path, done, "a part of requests does not reach the model as it was sent");
        }
    }
}

/// Cut before it is copied: there may be an omission for each part of a request.
fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn b2_names_of_models_and_fields_are_cut_before_they_are_copied() {
        let logged = Logged::default();
        let omissions: Vec<_> =
            (0..4000).map(|_| Omission { path: "é".repeat(300), done: "left out" }).collect();
        let began = Instant::now();
        log(&logged, &"m".repeat(8 << 20), &omissions);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
