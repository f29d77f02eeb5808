//! Why a store did not do what it was asked.

use std::{error::Error, fmt, sync::Arc};

/// The answer of a store, which may fail with a [`StoreError`].
pub type StoreResult<T> = Result<T, StoreError>;

/// What kind of failure a [`StoreError`] is, for callers that decide by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It cannot be reached, gives no answer in time, or has no room. The same request may succeed later.
    Unavailable,
    /// What it holds cannot be read: another version has written it, or it is damaged.
    Corrupt,
    /// Others change the same thing at the same time. The same request may succeed at once.
    Conflict,
    /// What it was given cannot be kept, such as a URL that is none or a text with a character that has no place in it.
    Invalid,
}

/// A failure of a store. Its text is for the operator: it may name hosts, files and tables.
///
/// ```
/// use registry_core::store::{StoreError, StoreErrorKind};
///
/// let error = StoreError::unavailable("connection refused").of("PostgreSQL database tools on db.example:5432");
/// assert_eq!(error.kind(), StoreErrorKind::Unavailable);
/// assert_eq!(error.to_string(), "PostgreSQL database tools on db.example:5432: connection refused");
/// assert!(error.is_transient());
/// ```
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    /// Which store it is.
    store: Option<Arc<str>>,
    cause: Arc<dyn Error + Send + Sync>,
}

/// What may be the cause of an error: any error, or a text.
type Cause = Box<dyn Error + Send + Sync>;

impl StoreError {
    fn new(kind: StoreErrorKind, cause: Cause) -> Self {
        Self { kind, store: None, cause: cause.into() }
    }

    /// The store cannot be reached or gives no answer; see [`StoreErrorKind::Unavailable`].
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::new(StoreErrorKind::Unavailable, cause.into())
    }

    /// What the store holds cannot be read; see [`StoreErrorKind::Corrupt`].
    pub fn corrupt(cause: impl Into<Cause>) -> Self {
        Self::new(StoreErrorKind::Corrupt, cause.into())
    }

    /// Others change the same thing; see [`StoreErrorKind::Conflict`].
    pub fn conflict(cause: impl Into<Cause>) -> Self {
        Self::new(StoreErrorKind::Conflict, cause.into())
    }

    /// What the store was given cannot be kept; see [`StoreErrorKind::Invalid`].
    pub fn invalid(cause: impl Into<Cause>) -> Self {
        Self::new(StoreErrorKind::Invalid, cause.into())
    }

    /// Names the store in the text.
    #[must_use]
    pub fn of(self, store: impl Into<Arc<str>>) -> Self {
        Self { store: Some(store.into()), ..self }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same request may succeed when it is made again.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Conflict)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(store) = &self.store {
            write!(f, "{store}: ")?;
        }
        self.cause.fmt(f)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

/// For programs whose errors are texts, such as command lines.
impl From<StoreError> for String {
    fn from(error: StoreError) -> Self {
        error.to_string()
    }
}

/// Two failures are the same where they are of one kind and read the same.
impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.to_string() == other.to_string()
    }
}

impl Eq for StoreError {}
