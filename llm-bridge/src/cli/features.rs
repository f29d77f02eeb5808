//! What the program was built without.

/// What is said to whoever needs a feature that the program was built without.
pub(super) fn missing(feature: &str) -> String {
    format!("this program was built without the feature `{feature}`; build it with `--features {feature}`")
}
