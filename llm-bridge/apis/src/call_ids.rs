//! Ids of calls, for APIs that have none.

use std::collections::{HashSet, VecDeque};

/// Makes up ids for the calls of a conversation whose API has none, and finds the call that a result belongs to.
///
/// An id depends only on how many calls without an id stand before it, so a conversation that goes on keeps its ids. Nine letters
/// and digits are what the templates of every model take.
#[derive(Debug, Default)]
pub struct CallIds {
    made: usize,
    taken: HashSet<String>,
    /// Calls without a result: their names and ids.
    open: VecDeque<(String, String)>,
}

impl CallIds {
    /// The id of the next call: its own, or a new one.
    pub fn call(&mut self, name: &str, own: Option<String>) -> String {
        let id = own.filter(|id| !id.is_empty()).unwrap_or_else(|| self.make());
        self.taken.insert(id.clone());
        self.open.push_back((name.to_owned(), id.clone()));
        id
    }

    /// The call that the next result belongs to: the one whose id it repeats, or else the first of its name without a result, or
    /// else the first without a result.
    pub fn result(&mut self, name: Option<&str>, own: Option<String>) -> String {
        let own = own.filter(|id| !id.is_empty());
        let at = match (&own, name) {
            (Some(own), _) => self.open.iter().position(|(_, id)| id == own),
            (None, Some(name)) => self.open.iter().position(|(open, _)| open == name),
            (None, None) => (!self.open.is_empty()).then_some(0),
        };
        let found = at.and_then(|at| self.open.remove(at)).map(|(_, id)| id);
        own.or(found).unwrap_or_else(|| self.make())
    }

    fn make(&mut self) -> String {
        loop {
            let id = format!("call{:05}", self.made);
            self.made = self.made.saturating_add(1);
            if !self.taken.contains(&id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_ids_are_stable_and_free() {
        let mut ids = CallIds::default();
        assert_eq!(ids.call("f", Some("call00000".into())), "call00000");
        assert_eq!(ids.call("f", None), "call00001");
        assert_eq!(ids.call("g", Some(String::new())), "call00002");
        assert_eq!(ids.result(Some("g"), None), "call00002");
        assert_eq!(ids.result(Some("f"), Some("call00001".into())), "call00001");
        assert_eq!(ids.result(None, None), "call00000");
        assert_eq!(ids.result(Some("f"), None), "call00003", "a result of no call has an id, too");
    }
}
