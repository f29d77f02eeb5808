//! What has been logged once and is not to be logged again.

use moka::sync::Cache;

/// How many names are remembered, and how long one is, in bytes: they are the client's.
const MAX_LOGGED: u64 = 1024;
const MAX_NAME: usize = 200;

/// What has been logged, by a name.
#[derive(Debug)]
pub(crate) struct Logged(Cache<String, ()>);

impl Default for Logged {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_LOGGED).build())
    }
}

impl Logged {
    /// The name, cut to what is remembered of it, if it has not been logged. From now on it has.
    pub(crate) fn first<'n>(&self, name: &'n str) -> Option<&'n str> {
        let name =
            name.get(..name.floor_char_boundary(MAX_NAME)).filter(|name| !self.0.contains_key(*name))?;
        self.0.insert(name.to_owned(), ());
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b2_what_was_logged_is_remembered_up_to_a_bound() {
        let logged = Logged::default();
        let name = |at: usize| format!("{at} {}é", "x".repeat(MAX_NAME));
        for at in 0..4000 {
            assert!(logged.first(&name(at)).is_some() && logged.first(&name(at)).is_none(), "{at}");
        }
        logged.0.run_pending_tasks();
        assert!((1..=MAX_LOGGED).contains(&logged.0.entry_count()), "{}", logged.0.entry_count());
        assert!(logged.0.iter().all(|(name, ())| name.len() <= MAX_NAME));
    }
}
