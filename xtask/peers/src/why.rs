//! Why a peer's calls are not ours, as far as that can be decided by looking at them.

mod leaf;

use llm_bridge::dialect::{self, Abort};

use crate::{
    call::{Called, left_over, same_calls},
    case::Case,
    ours::Reading,
};

/// A sort of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It gives an error, or panics.
    Fails,
    /// Nothing was offered.
    NothingOffered,
    /// Its stream is not what it reads as a whole.
    OwnStream,
    /// A call in thinking.
    Thinking,
    /// It drops a call to a tool that was not offered.
    UnknownDropped,
    /// It takes one without a mark.
    UnknownUnmarked,
    /// It drops a call whose end is missing.
    MissingEnd,
    /// It takes one that was cut off.
    CutOff,
    /// It takes one that cannot be read.
    Unreadable,
    /// It drops one that has to be mended.
    Mended,
    /// It takes one in code.
    Mentioned,
    /// It takes one without a mark where none begins.
    Unmarked,
    /// It does not read one in another dialect.
    OtherDialect,
    /// It gives arguments that are no JSON object.
    NoObject,
    /// It guesses types.
    Guessed,
    /// It types otherwise, by a schema.
    Typed,
    /// White space around values.
    Blank,
    /// Entities in values.
    Entities,
    /// The value of a number.
    Number,
    /// It deviates from what the case's own test asserts.
    Asserted,
    /// The tests disagree.
    Disputed,
    /// It deviates from what the case's test was seen to give.
    Observed,
}

impl Class {
    /// In a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Fails => "the peer gives an error",
            Self::NothingOffered => "no tools were offered",
            Self::OwnStream => "the peer's stream is not what it reads as a whole",
            Self::Thinking => "a call in thinking",
            Self::UnknownDropped => "a marked call to a tool that was not offered",
            Self::UnknownUnmarked => "an unmarked call to a tool that was not offered",
            Self::MissingEnd => "the closing mark is missing",
            Self::CutOff => "cut off inside an argument",
            Self::Unreadable => "a body that cannot be read",
            Self::Mended => "a body with a small fault",
            Self::Mentioned => "a call in code",
            Self::Unmarked => "JSON in the middle of text, or with other members",
            Self::OtherDialect => "a call in another dialect",
            Self::NoObject => "arguments that are no JSON object",
            Self::Guessed => "a value without a type",
            Self::Typed => "a value with a type",
            Self::Blank => "white space around a value",
            Self::Entities => "entities in a value",
            Self::Number => "the digits of a number",
            Self::Asserted => "the test that the case comes from says what ours says",
            Self::Disputed => "the tests disagree",
            Self::Observed => "the parser that the case comes from reads it as ours does",
        }
    }

    /// Why ours is as it is.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Fails => "Nothing a model writes is an error: what is no call is text.",
            Self::NothingOffered => "Where no tools are offered nothing is a call; the markup stays text.",
            Self::OwnStream => {
                "However a text is cut into pieces, it means the same; read as a whole, the peer agrees with ours."
            }
            Self::Thinking => {
                "What stands in thinking is thinking. Only a marked call to an offered tool inside thinking that is never closed \
                 ends it. The peer's parser of tool calls does not know of thinking, or its rule is another."
            }
            Self::UnknownDropped => {
                "Behind an explicit mark a well-formed call is a call, offered or not, so that whoever runs it can tell the model."
            }
            Self::UnknownUnmarked => {
                "Without a mark only the name tells a call from data, so it has to be one that was offered."
            }
            Self::MissingEnd => {
                "A call whose body is complete is a call. Servers take closing marks away as special tokens."
            }
            Self::CutOff => {
                "What was cut off inside an argument is no call: nobody knows what the model would have written. Its source comes back \
                 as text, and is reported as incomplete."
            }
            Self::Unreadable => "To make a call of it would be to guess. Its source comes back as text.",
            Self::Mended => {
                "Where only one reading is left, quotes, commas, brackets and tags are mended, and the call is marked as repaired."
            }
            Self::Mentioned => "A mark that is merely mentioned, in inline code or a code fence, is text.",
            Self::Unmarked => {
                "JSON without a mark is a call only at the start of a line, and only if it has no members but those of a call."
            }
            Self::OtherDialect => {
                "The dialect is never named, so a call in any of them is read; the peer reads the one it is told."
            }
            Self::NoObject => {
                "The arguments of a call are always a JSON object; the peer hands on what the model wrote."
            }
            Self::Guessed => {
                "Neither the markup nor a schema says a type, so the value is the string that was written."
            }
            Self::Typed => {
                "A value written as text becomes what its schema says if it can be read as that, and else stays a string."
            }
            Self::Blank => {
                "One newline on each side of an XML-like value is framing; other white space is data."
            }
            Self::Entities => "Entities stay as they are written, unless the dialect defines them.",
            Self::Number => "A number keeps the digits the model wrote.",
            Self::Asserted => "The peer deviates from it.",
            Self::Disputed => {
                "Each project's tests ask for something else here; ours is one of their readings, the peer's another."
            }
            Self::Observed => "The peer deviates from it. The test itself states only a part of it.",
        }
    }

    /// All of them, in the order of the report.
    pub const ALL: [Self; 22] = [
        Self::Guessed,
        Self::Typed,
        Self::Blank,
        Self::Entities,
        Self::Number,
        Self::NoObject,
        Self::UnknownDropped,
        Self::UnknownUnmarked,
        Self::Unmarked,
        Self::Mentioned,
        Self::Thinking,
        Self::NothingOffered,
        Self::MissingEnd,
        Self::CutOff,
        Self::Unreadable,
        Self::Mended,
        Self::OtherDialect,
        Self::Fails,
        Self::OwnStream,
        Self::Asserted,
        Self::Observed,
        Self::Disputed,
    ];
}

/// What a peer makes of a case.
#[derive(Debug, Clone, Copy)]
pub struct Theirs<'a> {
    /// Its calls, or its error.
    pub read: &'a Result<Vec<Called>, String>,
    /// Where that was a stream: what it reads as a whole.
    pub whole: Option<&'a Result<Vec<Called>, String>>,
}

/// The class of a difference, or none if it takes a person to explain it. Where a test asserts, undisputed, what the peer reads,
/// no rule here excuses ours.
pub fn class(case: &Case, ours: &Reading, theirs: Theirs<'_>) -> Option<Class> {
    let expected = same_calls(&case.expected, &ours.calls);
    let calls = match theirs.read {
        Ok(calls) => calls,
        Err(_) => return Some(Class::Fails),
    };
    if case.nothing_offered() {
        return Some(Class::NothingOffered);
    }
    if case.asserted && !case.disputed && !expected && same_calls(&case.expected, calls) {
        return None;
    }
    if let Some(Ok(whole)) = theirs.whole
        && same_calls(whole, &ours.calls)
    {
        return Some(Class::OwnStream);
    }
    by_rule(case, ours, calls).or_else(|| by_tests(case, ours, expected))
}

fn by_rule(case: &Case, ours: &Reading, theirs: &[Called]) -> Option<Class> {
    if let Some(over) = left_over(&ours.calls, theirs) {
        return missing(case, ours, &over);
    }
    if let Some(over) = left_over(theirs, &ours.calls) {
        let over: Vec<&Called> = over.into_iter().filter_map(|index| theirs.get(index)).collect();
        return extra(case, ours, &over);
    }
    if ours.calls.len() != theirs.len() {
        return None;
    }
    leaf::class(case, &ours.calls, theirs)
}

/// The peer lacks these calls.
fn missing(case: &Case, ours: &Reading, over: &[usize]) -> Option<Class> {
    let lacking: Vec<_> = over.iter().filter_map(|index| ours.raw.get(*index)).collect();
    let all = |fits: &dyn Fn(&llm_bridge::dialect::Call) -> bool| lacking.iter().all(|call| fits(call));
    if all(&|call| !case.offers(&call.name)) {
        return Some(Class::UnknownDropped);
    }
    let open = |call: &llm_bridge::dialect::Call| {
        dialect::dialect(call.dialect).is_some_and(|row| {
            !row.marks.is_empty() && !row.close.iter().any(|close| call.source.trim_end().ends_with(close))
        })
    };
    // Only where nothing follows in the text, or else the end is missing because another call follows at once.
    if all(&|call| open(call)) {
        return Some(Class::MissingEnd);
    }
    if all(&|call| call.repaired) {
        return Some(Class::Mended);
    }
    if ours.thought || case.thinking {
        return Some(Class::Thinking);
    }
    all(&|call| call.dialect != case.dialect && !case.dialect.starts_with(call.dialect))
        .then_some(Class::OtherDialect)
}

/// The peer has these calls and ours has not.
fn extra(case: &Case, ours: &Reading, over: &[&Called]) -> Option<Class> {
    if ours.thought || case.thinking {
        return Some(Class::Thinking);
    }
    let unmarked = dialect::dialect(&case.dialect).is_some_and(|row| row.marks.is_empty());
    if unmarked && over.iter().all(|call| !case.offers(&call.name)) {
        return Some(Class::UnknownUnmarked);
    }
    if ours.aborted.contains(&Abort::Incomplete) {
        return Some(Class::CutOff);
    }
    if ours.aborted.contains(&Abort::Unreadable) {
        return Some(Class::Unreadable);
    }
    let (code, text) = code_and_text(&case.input);
    if over
        .iter()
        .all(|call| !call.name.is_empty() && code.contains(&call.name) && !text.contains(&call.name))
    {
        return Some(Class::Mentioned);
    }
    (unmarked && !over.iter().any(|call| call.name.is_empty())).then_some(Class::Unmarked)
}

/// What stands between backticks, and the rest.
fn code_and_text(input: &str) -> (String, String) {
    let (mut code, mut text) = (String::new(), String::new());
    let (mut inside, mut before) = (false, ' ');
    for character in input.chars() {
        // Several in a row are one.
        inside ^= character == '`' && before != '`';
        if inside { &mut code } else { &mut text }.push(character);
        before = character;
    }
    (code, text)
}

/// What the tests that the case comes from say.
fn by_tests(case: &Case, ours: &Reading, expected: bool) -> Option<Class> {
    let read = |(_, calls): &(String, Vec<Called>)| same_calls(calls, &ours.calls);
    if case.disputed && (expected || case.also.iter().any(read)) {
        return Some(Class::Disputed);
    }
    match (expected, case.asserted) {
        (true, true) => Some(Class::Asserted),
        (true, false) => Some(Class::Observed),
        (false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code() {
        assert_eq!(code_and_text("a `b` c"), ("`b".into(), "a ` c".into()));
        assert_eq!(code_and_text("```\nb\n```\nc"), ("```\nb\n".into(), "```\nc".into()));
    }
}
