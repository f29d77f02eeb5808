//! Ids of calls, for APIs that have none.

use std::collections::{HashMap, VecDeque};

/// Makes up ids for the calls of a conversation whose API has none, and finds the call that a result belongs to.
///
/// An id depends only on how many calls without an id stand before it, so a conversation that goes on keeps its ids. Nine letters
/// and digits are what the templates of every model take.
///
/// A conversation may have tens of thousands of calls, so each is found by its id or name, not by going through all.
#[derive(Debug, Default)]
pub struct CallIds {
    made: usize,
    /// The ids of the calls, and whether they still have no result.
    calls: Vec<(String, bool)>,
    by_id: HashMap<String, VecDeque<usize>>,
    by_name: HashMap<String, VecDeque<usize>>,
    /// The calls before this one have results.
    first_open: usize,
}

impl CallIds {
    /// The id of the next call: its own, or a new one.
    pub fn call(&mut self, name: &str, own: Option<String>) -> String {
        let id = own.filter(|id| !id.is_empty()).unwrap_or_else(|| self.make());
        let at = self.calls.len();
        self.by_id.entry(id.clone()).or_default().push_back(at);
        self.by_name.entry(name.to_owned()).or_default().push_back(at);
        self.calls.push((id.clone(), true));
        id
    }

    /// The call that the next result belongs to: the one whose id it repeats, or else the first of its name without a result, or
    /// else the first without a result.
    pub fn result(&mut self, name: Option<&str>, own: Option<String>) -> String {
        let own = own.filter(|id| !id.is_empty());
        let Self { calls, by_id, by_name, first_open, .. } = self;
        let is_open = |at: usize| calls.get(at).is_some_and(|(_, is_open)| *is_open);
        let first_of = |queue: Option<&mut VecDeque<usize>>| {
            let queue = queue?;
            std::iter::from_fn(|| queue.pop_front()).find(|at| is_open(*at))
        };
        let at = match (&own, name) {
            (Some(own), _) => first_of(by_id.get_mut(own)),
            (None, Some(name)) => first_of(by_name.get_mut(name)),
            (None, None) => {
                *first_open = (*first_open..calls.len()).find(|at| is_open(*at)).unwrap_or(calls.len());
                Some(*first_open)
            }
        };
        let found = at.and_then(|at| calls.get_mut(at)).map(|(id, is_open)| {
            *is_open = false;
            id.clone()
        });
        own.or(found).unwrap_or_else(|| self.make())
    }

    fn make(&mut self) -> String {
        loop {
            let id = format!("call{:05}", self.made);
            self.made = self.made.saturating_add(1);
            if !self.by_id.contains_key(&id) {
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

    #[test]
    fn a_result_belongs_to_the_first_call_that_has_none() {
        let mut ids = CallIds::default();
        for (name, id) in [("f", "a"), ("f", "b"), ("g", "a"), ("g", "c")] {
            ids.call(name, Some(id.into()));
        }
        assert_eq!(ids.result(Some("g"), Some("b".into())), "b");
        assert_eq!(ids.result(Some("f"), None), "a");
        assert_eq!(ids.result(Some("f"), None), "call00000", "both calls of that name have their results");
        assert_eq!(ids.result(None, None), "a", "two calls may have one id");
        assert_eq!(ids.result(None, None), "c");
        assert_eq!(ids.result(None, None), "call00001");
    }

    #[test]
    fn many_results_find_their_calls_in_time_that_grows_with_their_number() {
        let began = std::time::Instant::now();
        let name = |at: usize| format!("{}{at:06}", "n".repeat(150));
        let mut ids = CallIds::default();
        (0..80_000).for_each(|at| drop(ids.call(&name(at), None)));
        (80_000..160_000).for_each(|at| drop(ids.result(Some(&name(at)), None)));
        (0..80_000).rev().for_each(|at| drop(ids.result(Some(&name(at)), None)));
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }
}
