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
            let text = format!("Not sent to the model: {omission}");
            if self.untold.len() < MOST_TOLD && self.untold.insert(text.clone()) {
                notices.push(TurnEvent::Notice(text));
            }
        }
        notices
    }
}

/// Whether it is a whole part of a message or a whole tool. Fields of these are in the log alone.
fn is_content(Omission { path, done }: &Omission) -> bool {
    let is_whole = path.ends_with(']') && (path.starts_with("messages[") || path.starts_with("tools["));
    is_whole && ["left out", "described"].iter().any(|word| done.starts_with(word))
}
