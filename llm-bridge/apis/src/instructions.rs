//! Conversations in a form that chat templates know.

use crate::{Content, Message, Part, Passing, Role};

/// Makes one system message of those that a conversation begins with, and system messages of all that are the developer's: few chat templates know
/// that role, and many take a second system message for an error.
pub fn join_instructions(messages: &mut Vec<Message>) {
    for message in messages.iter_mut().filter(|message| message.role == Role::Developer) {
        message.role = Role::System;
    }
    let leading = leading_instructions(messages);
    let others: Vec<Message> = messages.drain(leading.min(1)..leading).collect();
    let Some(first) = messages.first_mut() else { return };
    for Message { parts, passing, .. } in others {
        first.passing.add(passing);
        parts.into_iter().for_each(|part| add_part(&mut first.parts, part, "\n\n"));
    }
}

/// Where a chat template takes system messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemPlace {
    /// Anywhere.
    #[default]
    Anywhere,
    /// Before all other messages.
    First,
    /// Nowhere.
    Nowhere,
}

impl SystemPlace {
    /// Makes messages of the user of those system messages that stand elsewhere, and joins them with those beside them.
    pub fn hold(self, messages: &mut Vec<Message>) {
        let kept = match self {
            Self::Anywhere => return,
            Self::First => leading_instructions(messages),
            Self::Nowhere => 0,
        };
        for message in messages.iter_mut().skip(kept).filter(|message| message.role == Role::System) {
            (message.role, message.passing) = (Role::User, Passing::none());
        }
        join_users(messages);
    }
}

/// Joins messages of the user that follow each other: some chat templates want user and assistant to take turns.
pub fn join_users(messages: &mut Vec<Message>) {
    let is_plain = |message: &Message| message.role == Role::User && message.passing.is_empty();
    let mut joined: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages.drain(..) {
        match joined.last_mut().filter(|before| is_plain(before) && is_plain(&message)) {
            Some(before) => {
                message.parts.into_iter().for_each(|part| add_part(&mut before.parts, part, "\n"))
            }
            None => joined.push(message),
        }
    }
    *messages = joined;
}

fn leading_instructions(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role == Role::System).count()
}

/// Adds a part; a text to the one before it.
fn add_part(parts: &mut Vec<Part>, part: Part, between: &str) {
    match (parts.last_mut(), part) {
        (
            Some(Part { content: Content::Text(before), passing }),
            Part { content: Content::Text(text), passing: others },
        ) if passing.is_empty() && others.is_empty() => {
            before.push_str(between);
            before.push_str(&text);
        }
        (_, part) => parts.push(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Provider, RawJson};

    #[test]
    fn instructions_at_the_beginning_are_one_system_message() {
        let text = |role, text: &str| Message::text(role, text);
        let named = |name: &str| {
            let mut passing = Passing::of(Provider::OpenAi);
            passing.push("name", RawJson::of(name));
            passing
        };
        let part = Part { passing: named("p"), ..Content::Text("Three.".into()).into() };
        let mut messages = vec![
            Message { passing: named("first"), ..text(Role::System, "One.") },
            Message { passing: named("second"), ..text(Role::Developer, "Two.") },
            Message::new(Role::System, vec![part.clone()]),
            text(Role::User, "Go."),
            text(Role::Developer, "Later."),
            text(Role::System, "Last."),
        ];
        join_instructions(&mut messages);
        let parts = vec![Content::Text("One.\n\nTwo.".into()).into(), part];
        let expected = [
            Message { passing: named("first"), ..Message::new(Role::System, parts) },
            text(Role::User, "Go."),
            text(Role::System, "Later."),
            text(Role::System, "Last."),
        ];
        assert_eq!(messages, expected);
        join_instructions(&mut messages);
        assert_eq!(messages, expected);
        join_instructions(&mut Vec::new());
    }

    #[test]
    fn system_messages_stand_where_they_are_taken() {
        let text = |role, text: &str| Message::text(role, text);
        let call = || Content::Call(Call::new("c", "f", "{}")).into();
        let messages = || {
            vec![
                text(Role::System, "Be brief."),
                text(Role::User, "Go."),
                text(Role::System, "Now."),
                Message::new(Role::Assistant, vec![call()]),
                text(Role::System, "Be kind."),
                text(Role::User, "Well?"),
            ]
        };
        for (place, expected) in [
            (SystemPlace::Anywhere, messages()),
            (
                SystemPlace::First,
                vec![
                    text(Role::System, "Be brief."),
                    text(Role::User, "Go.\nNow."),
                    Message::new(Role::Assistant, vec![call()]),
                    text(Role::User, "Be kind.\nWell?"),
                ],
            ),
            (
                SystemPlace::Nowhere,
                vec![
                    text(Role::User, "Be brief.\nGo.\nNow."),
                    Message::new(Role::Assistant, vec![call()]),
                    text(Role::User, "Be kind.\nWell?"),
                ],
            ),
        ] {
            let mut placed = messages();
            place.hold(&mut placed);
            assert_eq!(placed, expected, "{place:?}");
        }
    }
}
