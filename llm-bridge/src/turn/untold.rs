//! Parts of a conversation, and tools, that the model server's API has no place for.

use toolrack_apis::{Omission, TurnEvent};

use super::run::Run;
use crate::upstream::Answer;

/// How many are told of in a turn.
const MOST_TOLD: usize = 16;

impl Run {
    /// What the person has to know of what the model is not told; each once in a turn.
    pub(super) fn report_untold(&mut self, answer: &Answer) -> Vec<TurnEvent> {
        let mut notices = Vec::new();
        for omission in answer.omissions().iter().filter(|omission| is_content(omission)) {
            notices.extend(self.tell_once(&omission.to_string()));
        }
        notices
    }

    /// What the person is told of one thing that the model is not told.
    pub(super) fn tell_once(&mut self, what: &str) -> Option<TurnEvent> {
        let text = format!("Not sent to the model: {what}");
        let is_told = self.untold.len() < MOST_TOLD && self.untold.insert(text.clone());
        is_told.then_some(TurnEvent::Notice(text))
    }
}

/// Whether it is a whole part of a message or a whole tool. Fields of these are in the log alone.
fn is_content(Omission { path, done }: &Omission) -> bool {
    let is_whole = path.ends_with(']') && (path.starts_with("messages[") || path.starts_with("tools["));
    is_whole && ["left out", "described"].iter().any(|word| done.starts_with(word))
}
