//! What else a tool may fail with, and how it becomes a [`ToolError`].

use std::error::Error;

use super::error::ToolError;
use crate::{ask::AskError, store::StoreError};

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        IntoToolError::into_tool_error(error)
    }
}

impl ToolError {
    /// Of what `?` does not take, as it is no [`std::error::Error`] itself: an `anyhow::Error`, an `eyre::Report`, a `Box<dyn Error + Send + Sync>`, a
    /// text.
    ///
    /// ```
    /// use registry_core::ToolError;
    ///
    /// fn read(text: &str) -> Result<u8, Box<dyn std::error::Error + Send + Sync>> {
    ///     Ok(text.parse()?)
    /// }
    ///
    /// fn tool() -> Result<u8, ToolError> {
    ///     Ok(read("no number").map_err(ToolError::of)?)
    /// }
    ///
    /// assert_eq!(tool().unwrap_err().message(), "invalid digit found in string");
    /// ```
    pub fn of(error: impl IntoToolError) -> Self {
        error.into_tool_error()
    }
}

/// A [`ToolError`] on its way through code that knows standard errors only.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Wrapped(ToolError);

impl From<ToolError> for Box<dyn Error + Send + Sync> {
    fn from(error: ToolError) -> Self {
        Box::new(Wrapped(error))
    }
}

/// What the `E` of a tool's `Result<T, E>` may be: a [`ToolError`], any error, or a text.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "not an error",
    note = "use `ToolError`, a type that implements `std::error::Error`, `Box<dyn Error + Send + Sync>`, or a `String`"
)]
pub trait IntoToolError {
    /// The failure as the registry reports it.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Box<dyn Error + Send + Sync>>> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        let error: Box<dyn Error + Send + Sync> = self.into();
        match error.downcast::<Wrapped>() {
            Ok(wrapped) => wrapped.0,
            Err(error) => {
                if let Some(ask) = error.downcast_ref::<AskError>() {
                    return ask.to_tool_error();
                }
                if let Some(failed) = store_error(error.as_ref()) {
                    return ToolError::store_failed(failed, "a store has failed; the audit says why");
                }
                let (text, KnownError { transient, private }) =
                    (with_causes(error.as_ref()), known(error.as_ref()));
                let error = match private {
                    Some(private) => ToolError::failed(text.replace(&private, "")).with_detail(text),
                    None => ToolError::failed(text),
                };
                if transient { error.retryable() } else { error }
            }
        }
    }
}

/// The failure of a store that an error is or comes from.
fn store_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e StoreError> {
    error.downcast_ref().or_else(|| store_error(error.source()?))
}

/// The error and what caused it, each once.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

/// What is known of an error of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownError {
    /// Whether it passes by itself, so that a tool that fails with it may be tried again.
    pub transient: bool,
    /// The part of its text that callers should not know, such as an address; the operator sees all of it.
    pub private: Option<String>,
}

/// Knows the errors of a library, for tools that fail with one. The crate that knows the library submits it; `None` says that an
/// error is not of that library.
///
/// ```
/// use registry_core::{KnownError, KnownErrors};
///
/// inventory::submit! {
///     KnownErrors(|error| error.downcast_ref::<std::fmt::Error>().map(|_| KnownError::default()))
/// }
/// ```
#[derive(Debug)]
pub struct KnownErrors(pub fn(&(dyn Error + 'static)) -> Option<KnownError>);

inventory::collect!(KnownErrors);

/// What is known of an error or of the first of its causes of which anything is.
fn known(error: &(dyn Error + 'static)) -> KnownError {
    let mut next = Some(error);
    while let Some(error) = next {
        let mut libraries = inventory::iter::<KnownErrors>.into_iter();
        if let Some(known) = libraries.find_map(|KnownErrors(read)| read(error)) {
            return known;
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return KnownError { transient: is_transient(error.kind()), private: None };
        }
        next = error.source();
    }
    KnownError::default()
}

/// Whether it is a connection that broke or took too long.
fn is_transient(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind as Kind;
    let broken = matches!(
        kind,
        Kind::BrokenPipe | Kind::ConnectionAborted | Kind::ConnectionReset | Kind::UnexpectedEof
    );
    broken || matches!(kind, Kind::ConnectionRefused | Kind::Interrupted | Kind::TimedOut)
}
