//! What of requests a model server's API cannot say.

use moka::sync::Cache;
use toolrack_apis::Omission;

/// How many kinds of omissions are remembered as logged, and how long the name of one is, in bytes: names of fields are the client's.
const MAX_LOGGED: u64 = 1024;
const MAX_NAME: usize = 200;

/// The omissions that have been logged, by the model and the place without its numbers.
#[derive(Debug)]
pub(super) struct Logged(Cache<String, ()>);

impl Default for Logged {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_LOGGED).build())
    }
}

impl Logged {
    /// Logs those that are new.
    pub(super) fn log(&self, model: &str, omissions: &[Omission]) {
        let model = cut(model);
        for Omission { path, done } in omissions {
            let path = cut(path);
            let mut name = format!("{model} {path}");
            name.truncate(name.floor_char_boundary(MAX_NAME));
            name.retain(|char| !char.is_ascii_digit());
            if !self.0.contains_key(&name) {
                self.0.insert(name, ());
                tracing::info!(
                    model,
                    path,
                    done,
                    "a part of requests does not reach the model as it was sent"
                );
            }
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
    fn b2_what_an_api_cannot_say_is_remembered_as_logged_up_to_a_bound() {
        let logged = Logged::default();
        let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
        let path = |at: usize| format!("{}{}{}é", letter(at), letter(at / 26), letter(at / 676)).repeat(100);
        let omissions: Vec<_> = (0..4000).map(|at| Omission { path: path(at), done: "left out" }).collect();
        let began = Instant::now();
        logged.log(&"m".repeat(8 << 20), &omissions);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        logged.log("m", &omissions);
        logged.0.run_pending_tasks();
        assert!((1..=MAX_LOGGED).contains(&logged.0.entry_count()), "{}", logged.0.entry_count());
        assert!(logged.0.iter().all(|(name, ())| name.len() <= MAX_NAME));
    }
}
