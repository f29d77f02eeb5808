//! Headers of messages, as models write them that speak in messages to several recipients: the user, a tool,
//! themselves. `<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>`, and parts of it.

use super::{
    body::{Is, cut, is, is_any, rest},
    offered::Offered,
};

/// A longer header is none.
const MAX_HEADER: usize = 512;

/// What has been read of a header.
#[derive(Debug, Default)]
struct Fields<'t> {
    recipient: Option<&'t str>,
    /// Words that no header has.
    strange: usize,
    /// It begins with a name that is not the model's.
    is_foreign: bool,
}

/// How a dialect writes the headers of messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeaderStyle {
    /// What ends a header and begins the message, and what the message then is.
    pub(crate) ends: &'static [(&'static str, Kind)],
    /// What may stand within a header.
    pub(crate) within: &'static [&'static str],
    /// What the header begins with that names who speaks.
    pub(crate) turn: &'static str,
    /// What ends a message, and how the model's next one begins.
    pub(crate) stop: &'static str,
    pub(crate) next: &'static str,
    /// What stands before the format of the message.
    pub(crate) format: &'static str,
    /// The words of headers, beside a name and a recipient.
    pub(crate) words: &'static [&'static str],
    /// Words of which one makes the message thinking.
    pub(crate) thinking: &'static [&'static str],
    /// What stands before the recipient.
    pub(crate) address: &'static str,
    /// The address with what may stand before it where the prompt has begun the header.
    pub(crate) begun: &'static [&'static str],
    /// The recipient of thinking.
    pub(crate) oneself: &'static str,
    /// Other recipients that are no tools.
    pub(crate) people: &'static [&'static str],
    /// What a recipient that is a tool may begin with.
    pub(crate) namespace: &'static str,
    /// The header of a call as it is rendered; `{name}` stands for the tool's name.
    pub(crate) call: &'static str,
}

/// What a message is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// What the words and the recipient of its header say.
    ByFields,
    Text,
    Thinking,
    Call,
}

/// What a possible header is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// More text is needed.
    More,
    /// None, which is known here.
    No(usize),
    /// Of a message for the user, or of thinking; where it ends. It may be somebody else's.
    Message { end: usize, thinking: bool, foreign: bool },
    /// Of a call of this tool.
    Call { end: usize, recipient: String },
}

impl HeaderStyle {
    /// Whether this ends a header; it does not end the message.
    pub(crate) fn is_end(&self, delimiter: &str) -> bool {
        self.ends.iter().any(|(end, _)| *end == delimiter)
    }

    /// Reads the header whose first delimiter has `delimiter` bytes.
    pub(super) fn read(&self, text: &str, delimiter: usize) -> Header {
        let area = cut(text, 0..text.floor_char_boundary(MAX_HEADER));
        let mut at = delimiter;
        let mut words = 0;
        let (begun, mut read) = (cut(text, 0..delimiter), Fields::default());
        let mut awaited = begun.ends_with(self.address);
        // Only a header of which more than the address is there may end without a token.
        let proven = begun.starts_with('<') || awaited && begun != self.address;
        let mut channel = self.within.contains(&begun);
        let mut constrained = false;
        loop {
            let here = rest(area, at);
            if let Some((end, kind)) = self.ends.iter().find(|(end, _)| here.starts_with(end)) {
                return self.judge(cut(text, 0..at), at + end.len(), *kind, &read);
            }
            let whole = area.len() < MAX_HEADER;
            if let Some(within) = self.within.iter().find(|within| here.starts_with(**within)) {
                at += within.len();
                channel = true;
                constrained = *within == self.format;
                continue;
            }
            let open = self.ends.iter().map(|(end, _)| *end).chain(self.within.iter().copied());
            if open.into_iter().any(|delimiter| delimiter.starts_with(here)) {
                return if whole { Header::More } else { Header::No(at) };
            }
            // Other white space than they have been taught stands between fields only.
            let apart = words > 0 && (channel || read.recipient.is_some());
            if let Some(space) = here.chars().next()
                && (space == ' ' || apart && space.is_whitespace())
            {
                at += space.len_utf8();
                continue;
            }
            if here.starts_with('{')
                && proven
                && read.strange == 0
                && let Some(Header::Call { recipient, .. }) =
                    Some(self.judge(cut(text, 0..at), at, Kind::ByFields, &read))
            {
                return Header::Call { end: at, recipient };
            }
            let length = here
                .find(|char: char| char.is_whitespace() || matches!(char, '<' | '{'))
                .unwrap_or(here.len());
            let word = cut(here, 0..length);
            let ended = length < here.len();
            let is_known = self.words.iter().any(|known| *known == word || !ended && known.starts_with(word));
            let addresses = word.starts_with(self.address) || !ended && self.address.starts_with(word);
            // The first word may be a name, and one unknown word may say what is addressed to a tool; another that is
            // none of a header's makes this text.
            let spare = constrained || read.recipient.is_some() && read.strange == 0;
            if word.is_empty() || !(is_known || addresses || awaited || spare || words == 0) {
                return Header::No(at);
            }
            if !ended {
                return if whole { Header::More } else { Header::No(area.len()) };
            }
            let name = if awaited { Some(word) } else { word.strip_prefix(self.address) };
            match name {
                Some(name) => {
                    awaited = name.is_empty();
                    // A person gives way to a tool that is named later.
                    let kept = read.recipient.filter(|first| !self.people.contains(first));
                    read.recipient = kept.or(Some(name)).filter(|name| !name.is_empty());
                }
                None if words == 0 => read.is_foreign = begun == self.turn && !is_known,
                None => read.strange += usize::from(!is_known && !constrained),
            }
            constrained = false;
            words += 1;
            at += length;
        }
    }

    /// Where a header ends that is broken off before its message, where the next one begins or the text ends; an error while
    /// more text decides.
    pub(super) fn broken_off(&self, text: &str, delimiter: usize, eof: bool) -> Result<Option<usize>, ()> {
        let area = cut(text, 0..text.floor_char_boundary(MAX_HEADER));
        let mut at = delimiter;
        loop {
            let Some(next) = rest(area, at).find(['<', '\n']).map(|next| at + next) else {
                return if area.len() < MAX_HEADER && !eof { Err(()) } else { Ok(None) };
            };
            let here = rest(area, next);
            let ended = here.strip_prefix(self.stop);
            match (is(ended.unwrap_or(here), self.next), is_any(here, self.within.iter().copied())) {
                (Is::Yes, _) => return Ok(Some(next)),
                (Is::Open, _) if eof => return Ok(ended.filter(|rest| rest.is_empty()).map(|_| next)),
                (_, Is::Yes) => at = next + 1,
                (Is::Open, _) | (_, Is::Open) if !eof => return Err(()),
                _ if ended.is_none() && is(here, self.stop) == Is::Open && !eof => return Err(()),
                _ => return Ok(None),
            }
        }
    }

    /// What stands before the tool's name in the header of a call, where that is more than an ordinary word.
    pub(super) fn opening(&self) -> Option<String> {
        (!self.namespace.is_empty()).then(|| format!("{}{}", self.address, self.namespace))
    }

    /// The offered tool in the recipient of a header whose tokens have been taken out: words of it may follow directly.
    pub(super) fn stripped_recipient(&self, recipient: &str, offered: &Offered) -> Option<String> {
        let mut name = recipient.strip_prefix(self.namespace).unwrap_or(recipient);
        loop {
            let tool = offered.resolve(name.to_owned());
            if offered.contains(&tool) {
                return Some(tool);
            }
            name = self.words.iter().find_map(|word| name.strip_suffix(word))?;
        }
    }

    /// The header of a call to this tool.
    pub(super) fn write(&self, name: &str) -> Option<String> {
        let fits = !name.contains(|char: char| char.is_whitespace() || matches!(char, '<' | '>' | '|'));
        fits.then(|| self.call.replace("{name}", name))
    }

    fn judge(&self, header: &str, end: usize, kind: Kind, read: &Fields<'_>) -> Header {
        // Of several channels the last one counts.
        let channel = self.within.first().and_then(|within| header.rsplit(within).next()).unwrap_or(header);
        let mut fields = channel.split(|char: char| char.is_whitespace() || matches!(char, '<' | '>' | '|'));
        let message = |thinking| Header::Message { end, thinking, foreign: read.is_foreign };
        match (kind, read.recipient) {
            (Kind::Call, _) => Header::Call { end, recipient: String::new() },
            (Kind::Thinking, _) => message(true),
            (Kind::ByFields, Some(name)) if name == self.oneself => message(true),
            (Kind::ByFields, Some(name)) if !self.people.contains(&name) => {
                Header::Call { end, recipient: name.to_owned() }
            }
            (Kind::ByFields, _) => message(fields.any(|field| self.thinking.contains(&field))),
            (Kind::Text, _) => message(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::HEADER;

    fn read(text: &str, delimiter: usize) -> Header {
        HEADER.read(text, delimiter)
    }

    #[test]
    fn tells_calls_from_thinking_and_text() {
        let call = |name: &str, text: &str| Header::Call { end: text.len(), recipient: name.into() };
        let message = |thinking, text: &str| Header::Message { end: text.len(), thinking, foreign: false };
        for (text, expected) in [
            (
                "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
                "functions.f",
            ),
            ("<|start|>assistant to=a.b<|message|>", "a.b"),
            ("to=f<|channel|>analysis <|constrain|>xml<|message|>", "f"),
        ] {
            assert_eq!(read(text, 3), call(expected, text));
            for end in 3..text.len() {
                assert_eq!(read(&text[..end], 3), Header::More, "{}", &text[..end]);
            }
        }
        for (text, thinking) in [
            ("<|channel|>analysis<|message|>", true),
            ("<|channel|>final<|message|>", false),
            ("<|start|>assistant to=self<|message|>", true),
            ("<|start|>assistant to=user<|message|>", false),
            ("<|message_model|>f<|content_thinking|>", true),
        ] {
            assert_eq!(read(text, 3), message(thinking, text));
        }
        assert_eq!(read("<|start|>assistant\n<|message|>", 9), Header::No(18));
        assert_eq!(read("<|start|>assistant <b>", 9), Header::No(19));
        assert_eq!(read("<|channel|> is what I would write", 11), Header::No(15));
        assert_eq!(read("<|start|>, he said", 9), Header::No(11));
        assert!(matches!(read(&"<|start|>".repeat(100), 9), Header::No(9)));
        assert!(matches!(read(&format!("<|start|>{}", "a".repeat(600)), 9), Header::No(512)));
    }
}
