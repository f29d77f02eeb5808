//! About how many tokens a text has, in whatever language and form it is written.

use toolrack_apis::{Content, MediaSource, Message, Part, Request, Role, ToolInput};

/// As how many tokens a picture or another file counts.
const MEDIA: u64 = 1000;
/// About how many tokens a message has besides its content.
const MESSAGE: u64 = 4;

/// A text's tokens: one for four characters, as the tokenizers of today's models make of English, of most languages with letters and of
/// programs; two for three Chinese, Japanese or Korean characters. White space and lines of one character repeated count once,
/// because tokenizers have long runs of them.
pub(crate) fn tokens_of(text: &str) -> u64 {
    if text.is_ascii() {
        let pairs = text.bytes().zip(text.bytes().skip(1));
        let repeated = pairs.filter(|(one, other)| one == other && !one.is_ascii_alphanumeric()).count();
        return u64::try_from((text.len() - repeated).div_ceil(4)).unwrap_or(u64::MAX);
    }
    // Twelfths of a token.
    let (mut twelfths, mut before) = (0u64, '\0');
    for character in text.chars() {
        if character != before || character.is_alphanumeric() {
            twelfths += match character {
                '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => 8,
                '\u{10000}'.. => 12,
                _ => 3,
            };
        }
        before = character;
    }
    twelfths.div_ceil(12)
}

/// The estimated tokens of a request or a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// Those of text, which the model gets in any case.
    pub(super) sure: u64,
    /// Those of reasoning, which many templates leave out of earlier answers, and of pictures and other files, which each model takes in its own size.
    pub(super) perhaps: u64,
}

impl Estimate {
    /// All that there may be.
    pub(crate) fn total(self) -> u64 {
        self.sure.saturating_add(self.perhaps)
    }

    /// Of messages.
    pub(crate) fn of(messages: &[Message]) -> Self {
        let mut estimate = Self::default();
        for message in messages {
            estimate.sure += MESSAGE;
            estimate.add(&message.parts);
        }
        estimate
    }

    /// Of a request, with definitions of tools beside its own.
    pub(super) fn of_request(request: &Request, definitions: &str) -> Self {
        let mut estimate = Self::of(&request.messages);
        estimate.sure += tokens_of(definitions);
        for tool in &request.tools {
            let schema = match &tool.input {
                ToolInput::Json { schema, .. } => schema,
                ToolInput::Text { format } => format,
            };
            let schema = schema.as_ref().map_or(0, |schema| tokens_of(&schema.to_string()));
            estimate.sure +=
                tokens_of(&tool.name) + tool.description.as_deref().map_or(0, tokens_of) + schema;
        }
        estimate
    }

    /// Of what stands behind the last answer, which no server can have read before.
    pub(super) fn of_news(messages: &[Message]) -> Self {
        let last = messages.iter().rposition(|message| message.role == Role::Assistant);
        let news = messages.get(last.map_or(0, |at| at + 1)..).unwrap_or_default();
        let mut estimate = Self::default();
        for message in news.iter().filter(|message| !is_system(message)) {
            estimate.add(&message.parts);
        }
        estimate
    }

    fn add(&mut self, parts: &[Part]) {
        for part in parts {
            match &part.content {
                Content::Text(text) => self.sure += tokens_of(text),
                Content::Reasoning(reasoning) => self.perhaps += tokens_of(&reasoning.text),
                Content::Call(call) => self.sure += tokens_of(&call.name) + tokens_of(&call.arguments),
                Content::Result(result) => self.add(&result.parts),
                Content::Media(media) => match &media.source {
                    MediaSource::Text(text) => self.sure += tokens_of(text),
                    _ => self.perhaps += MEDIA,
                },
                _ => {}
            }
        }
    }
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_no_text_is_taken_for_twice_the_tokens_that_it_has() {
        // With the count of o200k_base, the tokenizer of GPT-4o.
        for (text, tokens) in [
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("Быстрая коричневая лиса перепрыгивает через ленивую собаку.", 20),
            ("तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है", 19),
            ("敏捷的棕色狐狸跳过了懒狗。", 14),
            ("素早い茶色の狐が怠け者の犬を飛び越える。", 20),
            (r#"{"id": 17, "name": "Oslo", "temperature": -3.5, "tags": ["sea", "north"]}"#, 31),
            ("\t\tif (value == null) {\n\t\t\treturn 0;\n\t\t}\n", 16),
        ] {
            let estimated = tokens_of(text);
            assert!(estimated < 2 * tokens && estimated * 2 > tokens, "{text}: {estimated}");
        }
        for (text, tokens) in [(format!("a{}b", " ".repeat(400)), 6), ("=".repeat(200), 3)] {
            assert!((1..=tokens).contains(&tokens_of(&text)), "{text}");
        }
        assert_eq!((tokens_of(""), tokens_of("é")), (0, 1));
        assert_eq!(tokens_of("== ==  aa éé"), tokens_of("== ==  aa ee"));
        assert_eq!(tokens_of(&"word ".repeat(1000)), 1250);
    }
}
