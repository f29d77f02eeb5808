//! What turns have learned about models, for a while: servers are mended, and started in other ways. What they have learned in the requests of a
//! user counts for that user alone: a request can be made so that its server says what it does not mean.

use std::time::Duration;

use moka::sync::Cache;

use super::accepted::Accepted;
use crate::upstream::Asker;

/// A model by its full name, and who has asked it.
type Learner = (String, Asker);

/// For how long something is remembered.
const MEMORY: Duration = Duration::from_secs(3600);
/// Of how many users' models.
const MAX_LEARNED: u64 = 10_000;
/// In how many turns an answer has to be unreadable to its server before the model is no longer asked that way.
const MOST_UNREAD: u32 = 3;

/// Why a model does better with the tools in the prompt than in the fields of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The server refuses tools.
    Refusal,
    /// The server could not read an answer. Another one it may be able to read.
    Unread,
}

/// What is known of models.
#[derive(Debug)]
pub(super) struct Learned {
    /// How much speaks for describing the tools in the prompt.
    for_prompt: Cache<Learner, u32>,
    /// How many pictures the servers take in a request that have refused more.
    pictures: Cache<Learner, usize>,
    /// The models whose servers have refused requests as too long for their tools.
    without_room: Cache<Learner, ()>,
    /// What the servers accept that have refused something.
    accepted: Cache<Learner, Accepted>,
}

impl Default for Learned {
    fn default() -> Self {
        Self::for_a_while(MEMORY)
    }
}

impl Learned {
    fn for_a_while(memory: Duration) -> Self {
        fn kept<T: Clone + Send + Sync + 'static>(memory: Duration) -> Cache<Learner, T> {
            Cache::builder().time_to_live(memory).max_capacity(MAX_LEARNED).build()
        }
        Self {
            for_prompt: kept(memory),
            pictures: kept(memory),
            without_room: kept(memory),
            accepted: kept(memory),
        }
    }

    /// Whether a model does better with the tools in the prompt.
    pub(super) fn prefers_prompt(&self, model: &Learner) -> bool {
        self.for_prompt.get(model).is_some_and(|count| count >= MOST_UNREAD)
    }

    /// The tools in the prompt have helped a model.
    pub(super) fn prompt_has_helped(&self, model: Learner, evidence: Evidence) {
        let before = self.for_prompt.get(&model).unwrap_or_default();
        let now = match evidence {
            Evidence::Refusal => MOST_UNREAD,
            Evidence::Unread => (before + 1).min(MOST_UNREAD),
        };
        if before < now && now == MOST_UNREAD {
            tracing::warn!(
                model = model.0,
                "for an hour the tools are described to this model in the prompt for this user; `toolrack doctor MODEL --write` sets what serves it"
            );
        }
        self.for_prompt.insert(model, now);
    }

    /// How many pictures a model is sent at most, if its server has refused more.
    pub(super) fn taken_pictures(&self, model: &Learner) -> Option<usize> {
        self.pictures.get(model)
    }

    /// Asking a model with so many pictures has worked, after more were refused.
    pub(super) fn takes_pictures(&self, model: Learner, most: usize) {
        tracing::warn!(
            model = model.0,
            most,
            "for an hour no more pictures than that of this user are sent to this model"
        );
        self.pictures.insert(model, most);
    }

    /// What the server of a model accepts.
    pub(super) fn accepted(&self, model: &Learner) -> Accepted {
        self.accepted.get(model).unwrap_or_default()
    }

    /// Asking a model like that has worked, after its server had refused something.
    pub(super) fn accepts(&self, model: Learner, accepted: Accepted) {
        tracing::warn!(
            model = model.0,
            ?accepted,
            "for an hour this model is asked for this user as its server accepts it"
        );
        self.accepted.insert(model, accepted);
    }

    /// Whether a request with all tools is too long for a model.
    pub(super) fn has_no_room_for_tools(&self, model: &Learner) -> bool {
        self.without_room.contains_key(model)
    }

    /// Asking a model without the definitions of the tools has worked, after they were too long.
    pub(super) fn found_no_room_for_tools(&self, model: Learner) {
        tracing::warn!(
            model = model.0,
            "for an hour this model gets for this user `search_tools` in place of the tools, which are too long for its context; give it a larger context, or defer those with `deferred_tools` that it needs least"
        );
        self.without_room.insert(model, ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b14_what_was_learned_is_forgotten_after_a_while() {
        let learned = Learned::for_a_while(Duration::from_millis(20));
        let eve = ("m".to_owned(), Asker::new("default", "eve"));
        learned.prompt_has_helped(eve.clone(), Evidence::Refusal);
        learned.takes_pictures(eve.clone(), 0);
        learned.accepts(eve.clone(), Accepted::default());
        learned.found_no_room_for_tools(eve.clone());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!learned.prefers_prompt(&eve) && !learned.has_no_room_for_tools(&eve));
        assert!(learned.taken_pictures(&eve).is_none() && !learned.accepted.contains_key(&eve));
    }

    #[test]
    fn b14_what_the_requests_of_a_user_make_a_server_say_counts_for_nobody_else() {
        let learned = Learned::default();
        let of = |tenant: &str, user: &str| ("m".to_owned(), Asker::new(tenant, user));
        let eve = of("default", "eve");
        learned.prompt_has_helped(eve.clone(), Evidence::Refusal);
        learned.takes_pictures(eve.clone(), 0);
        learned.accepts(eve.clone(), Accepted::default());
        learned.found_no_room_for_tools(eve.clone());
        let known = |who: &Learner| {
            (
                learned.prefers_prompt(who),
                learned.taken_pictures(who),
                learned.accepted.contains_key(who),
                learned.has_no_room_for_tools(who),
            )
        };
        assert_eq!(known(&eve), (true, Some(0), true, true));
        for other in [of("default", "ada"), of("acme", "eve"), ("n".to_owned(), eve.1)] {
            assert_eq!(known(&other), (false, None, false, false), "{other:?}");
        }
    }
}
