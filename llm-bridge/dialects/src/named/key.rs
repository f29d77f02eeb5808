//! Slips of models in the tags around an argument's name, where its value has a tag of its own: a tag that is there twice,
//! or is missing.

use super::{NamedBody, Part, TagStyle, head::Head};
use crate::{
    body::{Cx, Is, Step, ahead, cut, is, is_any, rest},
    table::DelimiterKind,
};

impl TagStyle {
    /// What closes the name, where the value has a tag of its own.
    fn key_close(&self) -> Option<&'static str> {
        let Head::Between { close, .. } = self.key else { return None };
        close.first().copied().filter(|_| !self.value.is_empty())
    }

    /// Where what closes a name up to `at` has ended, which may be there twice; an error while more text decides.
    pub(super) fn after_key(&self, text: &str, at: usize, eof: bool) -> Result<usize, ()> {
        let Some((close, next)) = self.key_close().zip(ahead(text, at, &[])) else { return Ok(at) };
        match is(rest(text, next), close) {
            Is::Yes => Ok(next + close.len()),
            Is::Open if !eof && next < text.len() => Err(()),
            Is::Open | Is::No => Ok(at),
        }
    }
}

impl NamedBody {
    /// Passes over a tag that opens a name once more.
    pub(super) fn doubled_key(&mut self, tags: TagStyle, text: &str, eof: bool) -> Is {
        let (open, behind) = (tags.key.open(), rest(text, self.start));
        if tags.value.is_empty() || behind.is_empty() {
            return Is::No;
        }
        match is(behind, open) {
            Is::Yes => {
                self.start += open.len();
                self.repaired = true;
                Is::Yes
            }
            Is::Open if eof => Is::No,
            found => found,
        }
    }

    /// At what is no name of an argument: nothing, where the call has ended after whole arguments.
    pub(super) fn no_key(&mut self, text: &str, at: usize, eof: bool) -> Option<Step> {
        let alone = self.params > 0 && cut(text, self.start..at).trim().is_empty();
        match is_any(rest(text, at), self.ends()) {
            Is::Yes if alone => {
                self.repaired = true;
                self.pos = at;
                self.part = Part::Between;
                None
            }
            Is::Open if alone && !eof => Some(Step::More),
            _ => Some(Step::Reject(at)),
        }
    }

    /// Where the name of an argument begins at the position whose opening tag is missing, or is another one; an error while
    /// more text decides.
    pub(super) fn unopened_key(
        &mut self,
        tags: TagStyle,
        text: &str,
        eof: bool,
        cx: &Cx<'_>,
    ) -> Result<Option<usize>, ()> {
        let Some(close) = tags.key_close() else { return Ok(None) };
        if self.stray.is_some() {
            // Text stands before it.
            return Ok(None);
        }
        if self.params == 0 && self.begun.is_none() && !self.rest(text).is_empty() {
            match is(self.rest(text), close) {
                Is::Yes => return Ok(self.split_name(text, cx)),
                Is::Open if !eof => return Err(()),
                Is::Open | Is::No => {}
            }
        }
        let Some(all) = self.properties(cx) else { return Ok(None) };
        let openings = self.row.delimiters.iter().filter(|delimiter| delimiter.kind == DelimiterKind::Call);
        let opening = openings.map(|delimiter| delimiter.text).find(|open| self.rest(text).starts_with(open));
        let start = self.pos + opening.map_or(0, str::len);
        let behind = rest(text, start);
        let part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.');
        let length = behind.find(|char| !part(char)).unwrap_or(behind.len());
        let word = cut(behind, 0..length);
        if length == behind.len() {
            let open = all.keys().any(|name| name.starts_with(word));
            return if open && !eof { Err(()) } else { Ok(None) };
        }
        match is(rest(behind, length), close) {
            Is::Yes if all.contains_key(word) => Ok(Some(start)),
            Is::Open if all.contains_key(word) && !eof => Err(()),
            _ => Ok(None),
        }
    }

    /// Where the argument's name begins in what was taken for that of the tool: both stand together.
    fn split_name(&mut self, text: &str, cx: &Cx<'_>) -> Option<usize> {
        let name = self.name.clone()?;
        let tool = cx.offered.longest_in(&name)?;
        let key = rest(&name, tool.len());
        let has = cx.offered.schema(tool)?.get("properties")?.get(key).is_some();
        let start =
            self.pos.checked_sub(key.len()).filter(|start| has && rest(text, *start).starts_with(key))?;
        self.name = Some(tool.to_owned());
        Some(start)
    }

    /// Takes back the last argument, which has no value; the arguments before it have this length.
    pub(super) fn drop_argument(&mut self, before: usize) {
        self.arguments.truncate(before);
        self.keys.remove(&self.key);
        self.params -= 1;
        self.repaired = true;
        self.part = Part::Between;
    }
}
