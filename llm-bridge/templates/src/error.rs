//! Why there is no prompt.

use std::fmt;

use minijinja::{Error, ErrorKind};

use crate::{MAX_OUTPUT, MAX_SOURCE};

/// Why a template cannot be read or gives no prompt. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The source has more bytes than [`MAX_SOURCE`].
    #[error("the chat template has {0} bytes, and at most {MAX_SOURCE} are read; give a smaller one")]
    SourceTooLarge(usize),
    /// A model file cannot be read.
    #[error("the model file gives no chat template: {0}")]
    Gguf(String),
    /// The source is not a template.
    #[error("the chat template is broken: {0}; give one that is whole")]
    Syntax(String),
    /// The template says itself that it cannot write this conversation (`raise_exception`).
    #[error("the chat template refuses the conversation: {0}")]
    Refused(String),
    /// The template fails for this conversation.
    #[error("the chat template fails: {0}; give another one")]
    Failed(String),
    /// It works, or nests, without end.
    #[error(
        "the chat template does not come to an end with this conversation; give another one or less text"
    )]
    TooMuchWork,
    /// The prompt has more bytes than [`MAX_OUTPUT`].
    #[error("the chat template writes a prompt of over {MAX_OUTPUT} bytes; give less text")]
    OutputTooLarge,
}

/// What `raise_exception` was called with.
#[derive(Debug)]
pub(crate) struct Raised(pub(crate) String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

impl TemplateError {
    pub(crate) fn of_source(error: &Error) -> Self {
        Self::Syntax(told(error))
    }

    pub(crate) fn of_render(error: &Error) -> Self {
        if let Some(Raised(message)) = cause(error) {
            return Self::Refused(message.clone());
        }
        // What ran out within a macro is the cause of its caller's error.
        let mut kinds = std::iter::successors(Some(error), |error| cause_of(error));
        if kinds.any(|error| error.kind() == ErrorKind::OutOfFuel || is_too_deep(error)) {
            return Self::TooMuchWork;
        }
        Self::Failed(told(error))
    }
}

fn is_too_deep(error: &Error) -> bool {
    error.detail().is_some_and(|detail| detail.contains("recursion limit"))
}

fn cause_of(error: &Error) -> Option<&Error> {
    std::error::Error::source(error)?.downcast_ref()
}

/// The first cause of this type.
fn cause<T: std::error::Error + 'static>(error: &Error) -> Option<&T> {
    let first = std::error::Error::source(error);
    std::iter::successors(first, |error| error.source()).find_map(|error| error.downcast_ref())
}

/// The error in one line: what, and in which line of the source.
fn told(error: &Error) -> String {
    let innermost = std::iter::successors(Some(error), |error| cause_of(error)).last().unwrap_or(error);
    let kind = innermost.kind();
    let what = innermost.detail().map_or_else(|| kind.to_string(), |detail| format!("{kind}: {detail}"));
    match innermost.line() {
        Some(line) => format!("{what} (line {line})"),
        None => what,
    }
}
