//! What keeps a host from starting with its resources.

use crate::plugin::Place;

/// What is wrong with the resources of a program or with their settings. That a resource cannot be made is none: then the tools that
/// need it are off, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// A table of the configuration is wrong.
    #[error("[{table}]: {message}")]
    Settings {
        /// The table.
        table: String,
        /// Where in it: a JSON pointer to the key, empty for the table itself.
        pointer: String,
        /// What is wrong.
        message: String,
    },
    /// An environment variable is wrong.
    #[error("{variable}: {message}")]
    Variable {
        /// The variable.
        variable: String,
        /// What is wrong.
        message: String,
    },
    /// Two functions provide one type.
    #[error(
        "two functions provide `{type_name}`: {first} and {second}; remove one, or give one a type of its own"
    )]
    Duplicate {
        /// The type.
        type_name: &'static str,
        /// The first by file and line.
        first: Place,
        /// The other.
        second: Place,
    },
    /// Functions that wait for each other.
    #[error("these resources need each other, so none can be made first: {names}", names = cycle(.0))]
    Cycle(Vec<(&'static str, Place)>),
    /// A function that runs once asks for something that differs by request.
    #[error(
        "`{name}` ({place}) runs once, and needs `{needs}`, which differs by request; add `ctx: &ToolContext` to its parameters"
    )]
    DiffersByRequest {
        /// The function.
        name: &'static str,
        /// Where it is.
        place: Place,
        /// The type.
        needs: &'static str,
    },
}

fn cycle(names: &[(&'static str, Place)]) -> String {
    let named = names.iter().map(|(name, at)| format!("`{name}` ({at})"));
    named.chain(names.first().map(|(name, _)| format!("`{name}`"))).collect::<Vec<_>>().join(" needs ")
}
