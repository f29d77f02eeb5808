//! The name of a chat: the first words of its first question, until the model has found a better one.

use std::{sync::Arc, time::Duration};

use registry_core::{
    model::{LanguageModel, ModelQuestion},
    store::{ChatChange, ChatStore},
    text::is_invisible,
};

use super::{message::Shown, running::ChatId};
use crate::upstream::{Upstream, UpstreamModel};

/// Who has given a title.
pub(super) const QUESTION: &str = "question";
pub(super) const MODEL: &str = "model";
pub(super) const USER: &str = "user";

/// The longest title, in characters.
pub(super) const MAX_TITLE: usize = 200;
/// How much of a question is its title, in characters.
const OF_QUESTION: usize = 60;
/// The longest title of a model, in characters.
const OF_MODEL: usize = 80;
/// How much of the question and of the answer the model gets, in bytes.
const EXCERPT: usize = 2000;
/// How long the model may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A model may think before it answers.
const MAX_TOKENS: u32 = 1000;
const SYSTEM: &str = "You name conversations. Answer with a title of two to six words in the language of the conversation, and with nothing else: \
                      no quotation marks, no full stop.";

/// What no title has in it: it would not be seen, or turn the titles beside it around.
pub(super) fn is_unseen(letter: char) -> bool {
    letter.is_control() || is_invisible(letter)
}

/// The first words of a question; `None` where it has none.
pub(super) fn of_question(question: &str) -> Option<String> {
    let words = question.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = words.chars().filter(|letter| !is_unseen(*letter)).collect();
    let title = match words.char_indices().nth(OF_QUESTION) {
        None => words,
        Some((end, _)) => {
            let beginning = words.get(..end).unwrap_or_default();
            let whole = beginning.rsplit_once(' ').map_or(beginning, |(words, _)| words);
            format!("{whole}…")
        }
    };
    (!title.is_empty()).then_some(title)
}

/// The title in a model's answer; `None` where it is none.
fn of_model(answer: &str) -> Option<String> {
    let line = answer.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.strip_prefix("Title:").unwrap_or(line);
    let title = line.trim_matches(|letter: char| letter.is_whitespace() || "\"'“”„«»*#`.".contains(letter));
    let is_title = !title.is_empty() && title.chars().count() <= OF_MODEL && !title.contains(is_unseen);
    is_title.then(|| title.to_owned())
}

fn excerpt(text: &str) -> &str {
    text.get(..text.floor_char_boundary(EXCERPT)).unwrap_or_default()
}

/// Asks the model for a name, once. Without one the chat keeps the first words of its question.
pub(super) async fn name(
    upstream: Upstream,
    store: Arc<dyn ChatStore>,
    chat: ChatId,
    question: String,
    answer: Shown,
) {
    let text = answer.text();
    let prompt = format!(
        "Name this conversation.\n\n<question>\n{}\n</question>\n\n<answer>\n{}\n</answer>",
        excerpt(&question),
        excerpt(&text)
    );
    let model = UpstreamModel::new(upstream, answer.model);
    let asked = model.answer(ModelQuestion { system: SYSTEM.to_owned(), prompt, max_tokens: MAX_TOKENS });
    let title = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => of_model(&answer.text),
        Ok(Err(cause)) => {
            tracing::debug!(%cause, "chat_not_named");
            None
        }
        Err(_) => None,
    };
    let Some(title) = title else { return };
    let change = ChatChange {
        title: Some((title, MODEL.to_owned())),
        // The user may have named it meanwhile.
        if_titled_by: Some(QUESTION.to_owned()),
        ..ChatChange::default()
    };
    if let Err(cause) = store.change_chat(chat.key(), change).await {
        tracing::warn!(%cause, "chat_not_named");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b17_a_title_is_the_first_words_of_the_question_or_a_line_of_the_model() {
        assert_eq!(of_question(" Is it\n cold? ").as_deref(), Some("Is it cold?"));
        assert_eq!(of_question(" \n"), None);
        assert_eq!(of_question("a\u{202e}b\u{ad}c").as_deref(), Some("abc"));
        assert_eq!(of_model("a\u{202e}b"), None);
        let long = of_question(&"Zürich ".repeat(30)).unwrap();
        assert!(long.ends_with("Zürich…") && long.chars().count() <= OF_QUESTION + 1, "{long}");
        assert!(of_question(&"ü".repeat(200)).unwrap().chars().count() <= OF_QUESTION + 1);
        assert_eq!(of_model("\n**\"Green tea\".**\nmore").as_deref(), Some("Green tea"));
        for none in ["", " \n", "\"\"", &"word ".repeat(40)] {
            assert_eq!(of_model(none), None, "{none}");
        }
    }
}
