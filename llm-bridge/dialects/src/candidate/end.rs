//! Where a call ends that could not be read.

use super::{Candidate, State};
use crate::{
    body::rest,
    table::{DelimiterKind, Form},
};

impl Candidate {
    /// What may end the calls after the delimiter; nothing where the delimiter is merely mentioned. Where the text is cut off
    /// (`at_end`) any beginning of a call is one.
    pub(crate) fn ends(&self, at_end: bool) -> Option<Vec<&'static str>> {
        let State::Owned(dialect, body) = &self.state else { return None };
        let meant = !self.bare && (at_end || body.is_meant());
        let (row, _) = self.opened.iter().find(|(row, _)| row.name == *dialect)?;
        let end = |form: &Form| if let Form::Named(style) = form { style.end } else { &[] };
        meant.then(|| row.close.iter().chain(row.forms.iter().flat_map(end)).copied().collect())
    }

    /// Whether it has come to the arguments of a call.
    pub(crate) fn is_in_arguments(&self) -> bool {
        matches!(&self.state, State::Owned(_, body) if body.is_named() && body.is_meant())
    }

    /// Where the call ends in a text that begins in it, if it does: calls that stand in the text have such ends, too.
    pub(crate) fn end_of_arguments(&self, text: &str) -> Option<usize> {
        let State::Owned(dialect, _) = &self.state else { return None };
        let (row, kind) = self.opened.iter().find(|(row, _)| row.name == *dialect)?;
        let (opens, ends): (Vec<&str>, Vec<&str>) = if *kind == DelimiterKind::Wrapper {
            let wrappers = row.delimiters.iter().filter(|delimiter| delimiter.kind == *kind);
            (wrappers.map(|delimiter| delimiter.text).collect(), row.close.to_vec())
        } else {
            let heads = row.forms.iter().filter_map(|form| match form {
                Form::Named(style) => Some((style.head.open(), *style.end.last()?)),
                Form::Json(_) => None,
            });
            heads.filter(|(open, _)| !open.is_empty()).unzip()
        };
        let mut open = 0_usize;
        for (at, _) in text.char_indices() {
            let here = rest(text, at);
            if opens.iter().any(|tag| here.starts_with(tag)) {
                open += 1;
            } else if ends.iter().any(|tag| here.starts_with(tag)) {
                let Some(outer) = open.checked_sub(1) else { return Some(at) };
                open = outer;
            }
        }
        None
    }
}
