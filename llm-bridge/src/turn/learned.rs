//! What turns have learned about models, for a while: servers are mended, and started in other ways.

use std::time::Duration;

use moka::sync::Cache;

use super::accepted::Accepted;

/// For how long something is remembered.
const MEMORY: Duration = Duration::from_secs(3600);
/// Of how many models.
const MODELS: u64 = 1024;
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

/// What is known of models, by their full names.
#[derive(Debug)]
pub(super) struct Learned {
    /// How much speaks for describing the tools in the prompt.
    for_prompt: Cache<String, u32>,
    /// How many pictures the servers take in a request that have refused more.
    pictures: Cache<String, usize>,
    /// The models whose servers have refused requests as too long for their tools.
    without_room: Cache<String, ()>,
    /// What the servers accept that have refused something.
    accepted: Cache<String, Accepted>,
}

fn of_models<T: Clone + Send + Sync + 'static>() -> Cache<String, T> {
    Cache::builder().time_to_live(MEMORY).max_capacity(MODELS).build()
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            for_prompt: of_models(),
            pictures: of_models(),
            without_room: of_models(),
            accepted: of_models(),
        }
    }
}

impl Learned {
    /// Whether a model does better with the tools in the prompt.
    pub(super) fn prefers_prompt(&self, model: &str) -> bool {
        self.for_prompt.get(model).is_some_and(|count| count >= MOST_UNREAD)
    }

    /// The tools in the prompt have helped a model.
    pub(super) fn prompt_has_helped(&self, model: String, evidence: Evidence) {
        let before = self.for_prompt.get(&model).unwrap_or_default();
        let now = match evidence {
            Evidence::Refusal => MOST_UNREAD,
            Evidence::Unread => (before + 1).min(MOST_UNREAD),
        };
        if before < now && now == MOST_UNREAD {
            tracing::warn!(
                model,
                "for an hour the tools are described to this model in the prompt; `toolrack doctor MODEL --write` sets what serves it"
            );
        }
        self.for_prompt.insert(model, now);
    }

    /// How many pictures a model is sent at most, if its server has refused more.
    pub(super) fn taken_pictures(&self, model: &str) -> Option<usize> {
        self.pictures.get(model)
    }

    /// Asking a model with so many pictures has worked, after more were refused.
    pub(super) fn takes_pictures(&self, model: String, most: usize) {
        tracing::warn!(model, most, "for an hour no more pictures than that are sent to this model");
        self.pictures.insert(model, most);
    }

    /// What the server of a model accepts.
    pub(super) fn accepted(&self, model: &str) -> Accepted {
        self.accepted.get(model).unwrap_or_default()
    }

    /// Asking a model like that has worked, after its server had refused something.
    pub(super) fn accepts(&self, model: String, accepted: Accepted) {
        tracing::warn!(model, ?accepted, "for an hour this model is asked as its server accepts it");
        self.accepted.insert(model, accepted);
    }

    /// Whether a request with all tools is too long for a model.
    pub(super) fn has_no_room_for_tools(&self, model: &str) -> bool {
        self.without_room.contains_key(model)
    }

    /// Asking a model without the definitions of the tools has worked, after they were too long.
    pub(super) fn found_no_room_for_tools(&self, model: String) {
        tracing::warn!(
            model,
            "for an hour this model gets `search_tools` in place of the tools, which are too long for its context; give it a larger context, or defer those with `deferred_tools` that it needs least"
        );
        self.without_room.insert(model, ());
    }
}
