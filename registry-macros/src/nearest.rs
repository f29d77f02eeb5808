//! The name that may have been meant.

/// The name most like one, if one is like it.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored =
        names.map(|known| (strsim::jaro_winkler(name, known), known)).filter(|(score, _)| *score > 0.75);
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}
