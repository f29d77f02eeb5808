//! How many pictures a model is asked with.

use registry_core::Caller;
use toolrack_apis::Message;

use super::{
    super::{Backend, recover, run::Run},
    count,
    describe::{count_of_user, described},
};
use crate::upstream::Route;

/// How many pictures of results a model is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct PictureLimit {
    /// As the settings say.
    most: usize,
    /// How many pictures the server takes in a request, with those that the user has sent, if it has refused more.
    taken: Option<usize>,
    /// Whether asking with so many has not worked yet.
    is_news: bool,
}

impl PictureLimit {
    fn of(&self, messages: &[Message]) -> usize {
        let left = |taken: usize| taken.saturating_sub(count_of_user(messages));
        self.taken.map_or(self.most, |taken| left(taken).min(self.most))
    }

    /// The messages as the model gets them, if that is otherwise than they are.
    pub(in super::super) fn apply(&self, messages: &[Message]) -> Option<Vec<Message>> {
        if count(messages) == 0 { None } else { described(messages, self.of(messages)) }
    }
}

impl Backend {
    /// How many pictures of results the model of a route is sent.
    pub(in super::super) fn picture_limit(&self, route: &Route) -> PictureLimit {
        let settings = self.settings();
        let sees = settings.models.pictures(route.model());
        let most = if sees == Some(false) || route.is_demo() { 0 } else { settings.limits.max_pictures };
        let learned = || self.shared.learned.taken_pictures(&route.learner());
        PictureLimit { most, taken: if sees.is_none() { learned() } else { None }, is_news: false }
    }

    /// Whether the model of this name sees pictures, as far as it is set or was found out in the caller's requests.
    pub(crate) fn sees(&self, name: &str, caller: &Caller) -> Option<bool> {
        let learner = || (name.to_owned(), self.asker(caller));
        let learned = || (self.shared.learned.taken_pictures(&learner()) == Some(0)).then_some(false);
        self.settings().models.pictures(name).or_else(learned)
    }

    /// Makes the pictures in results fit.
    pub(in super::super) async fn fit_pictures(&self, messages: &mut [Message]) {
        let limits = self.settings().limits;
        self.shared.pictures.fit(messages, limits.max_pictures, limits.max_picture_edge).await;
    }
}

impl Run {
    /// Puts the messages as the model gets them in the place of those with all pictures, and gives these back, if there are any.
    pub(in super::super) fn set_pictures_aside(&mut self) -> Option<Vec<Message>> {
        let fewer = self.picture_limit.apply(&self.request.messages)?;
        Some(std::mem::replace(&mut self.request.messages, fewer))
    }

    /// What to ask with again after an error, if it is about the pictures in results. What the user has sent is not ours to leave out.
    pub(in super::super) fn fewer_pictures(&self, message: &str) -> Option<PictureLimit> {
        let messages = &self.request.messages;
        let taken = recover::most_pictures(message)?;
        let sees = self.backend.settings().models.pictures(self.route.model());
        if sees == Some(true) && taken == 0 {
            return None;
        }
        let limit = PictureLimit { taken: Some(taken), is_news: true, ..self.picture_limit };
        let shown = count(messages).min(self.picture_limit.of(messages));
        (limit.of(messages) < shown).then_some(limit)
    }

    /// Remembers how many pictures the server takes, as that has just worked.
    pub(in super::super) fn learn_pictures(&mut self) {
        if std::mem::take(&mut self.picture_limit.is_news)
            && let Some(taken) = self.picture_limit.taken
        {
            self.backend.shared.learned.takes_pictures(self.route.learner(), taken);
        }
    }

    /// Makes the pictures in results fit from this message on.
    pub(in super::super) async fn fit_pictures(&mut self, from: usize) {
        if let Some(messages) = self.request.messages.get_mut(from..) {
            self.backend.fit_pictures(messages).await;
        }
    }
}
