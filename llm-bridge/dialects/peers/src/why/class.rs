//! The sorts of differences that can be told by rules.

/// A sort of difference between a peer and ours, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It guesses a type.
    Guessed,
    /// It types a value otherwise than its schema says, or ours does as well as it can.
    Typed,
    /// It takes more or less white space off a value.
    Blank,
    /// It decodes them.
    Entities,
    /// It rounds one.
    Number,
    /// It hands on something else.
    NoObject,
    /// It ends a value, or the call, at a mark in it.
    MarkInValue,
    /// It drops one.
    UnknownDropped,
    /// It takes one.
    UnknownUnmarked,
    /// It takes one.
    BadName,
    /// It takes one.
    Unmarked,
    /// It takes a call there.
    Mentioned,
    /// It takes one, or drops one.
    Thinking,
    /// It takes one.
    NothingOffered,
    /// It drops one.
    Unwrapped,
    /// It reads the case if line ends are put there.
    Spacing,
    /// It drops one.
    MissingEnd,
    /// It takes one.
    CutOff,
    /// It takes one.
    Unreadable,
    /// It drops one, or an argument of it.
    Mended,
    /// It does not read it.
    OtherDialect,
    /// It gives an error, or panics.
    Fails,
    /// Its stream deviates.
    OwnStream,
    /// It deviates from an asserted expectation.
    Asserted,
    /// It deviates from an observed expectation.
    Observed,
    /// Ours is one of several readings.
    Disputed,
}

/// Every class, in a few words, and why ours is as it is.
pub const CLASSES: &[(Class, &str, &str)] = &[
    (
        Class::Guessed,
        "a value without a type",
        "Neither the markup nor a schema says a type, so the value is the string that was written.",
    ),
    (
        Class::Typed,
        "a value with a type",
        "A value written as text becomes what its schema says if it can be read as that, and else stays a \
         string.",
    ),
    (
        Class::Blank,
        "white space around a value",
        "One newline on each side of an XML-like value is framing; other white space is data.",
    ),
    (
        Class::Entities,
        "entities in a value",
        "Entities stay as they are written, unless the dialect defines them.",
    ),
    (Class::Number, "the digits of a number", "A number keeps the digits the model wrote."),
    (
        Class::NoObject,
        "arguments that are no JSON object",
        "The arguments of a call are always a JSON object; the peer hands on what the model wrote.",
    ),
    (Class::MarkInValue, "a mark inside a value", "What stands in a value is data, marks as well."),
    (
        Class::UnknownDropped,
        "a marked call to a tool that was not offered",
        "Behind an explicit mark a well-formed call is a call, offered or not, so that the model can be told.",
    ),
    (
        Class::UnknownUnmarked,
        "an unmarked call to a tool that was not offered",
        "Without a mark only the name tells a call from data, so it has to be one that was offered.",
    ),
    (
        Class::BadName,
        "a name that is none",
        "A tool's name is not empty and has no line end and no angle bracket in it. The source is text.",
    ),
    (
        Class::Unmarked,
        "JSON in the middle of text, or with other members",
        "JSON without a mark is a call only at the start of a line, and only if it has no members but \
         those of a call.",
    ),
    (
        Class::Mentioned,
        "a mark that is merely mentioned",
        "In inline code, in a code fence that shows something, or with no end anywhere, a mark is text.",
    ),
    (
        Class::Thinking,
        "a call in thinking",
        "What stands in thinking is thinking; only a marked call to an offered tool in thinking that is \
         never closed ends it. The peers' parsers of tool calls leave thinking to another that runs \
         before them; the unified ones have rules of their own.",
    ),
    (
        Class::NothingOffered,
        "no tools were offered",
        "Where no tools are offered nothing is a call; the markup stays text.",
    ),
    (
        Class::Unwrapped,
        "a call without its wrapper",
        "The tag with which the body begins is a mark too. Models leave the wrapper out, and servers take \
         it away as a special token.",
    ),
    (
        Class::Spacing,
        "white space between the marks and the body",
        "Whether there is any makes no difference.",
    ),
    (
        Class::MissingEnd,
        "the closing mark is missing",
        "A call whose body is complete is a call. Servers take closing marks away as special tokens.",
    ),
    (
        Class::CutOff,
        "cut off inside an argument",
        "What was cut off inside an argument is no call: nobody knows what the model would have written. \
         Its source comes back as text, and is reported as incomplete.",
    ),
    (
        Class::Unreadable,
        "a body that cannot be read",
        "To make a call of it would be to guess. Its source comes back as text.",
    ),
    (
        Class::Mended,
        "a body with a small fault",
        "Where only one reading is left, quotes, commas, brackets and tags are mended, and the call is \
         marked as repaired.",
    ),
    (
        Class::OtherDialect,
        "a call in another dialect",
        "The dialect is never named, so a call in any of them is read; the peer reads the one it is told.",
    ),
    (Class::Fails, "the peer gives an error", "Nothing a model writes is an error: what is no call is text."),
    (
        Class::OwnStream,
        "the peer's stream is not what it reads as a whole",
        "However a text is cut into pieces, it means the same. As a whole the peer reads it as ours does, \
         or in a way told here. Some peers find a mark only if it comes in one piece, as a token may.",
    ),
    (Class::Asserted, "the test that the case comes from says what ours says", "The peer deviates from it."),
    (
        Class::Observed,
        "the parser that the case comes from reads it as ours does",
        "The peer deviates from it. The test itself states only a part of it.",
    ),
    (
        Class::Disputed,
        "the tests disagree",
        "Each project's tests ask for something else here; ours is one of their readings, the peer's another.",
    ),
];
