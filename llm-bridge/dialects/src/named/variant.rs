//! Arguments in other tags than those of the call's dialect: models mix the families.

use super::{Arguments, NamedBody, Part, TagStyle, head};
use crate::body::{Cx, Is, ahead, is, rest};

/// What models write around all arguments.
const AROUND: [(&str, &str); 2] = [("<arguments>", "</arguments>"), ("<parameters>", "</parameters>")];

impl NamedBody {
    /// How the arguments of this call are written, which the first of them shows; an error while more text decides.
    pub(super) fn variant(
        &mut self,
        tags: TagStyle,
        text: &str,
        eof: bool,
        cx: &Cx<'_>,
    ) -> Result<TagStyle, ()> {
        if self.params > 0 || is(self.rest(text), tags.key.open()) == Is::Yes {
            return Ok(tags);
        }
        let mut open = false;
        for other in tags.others {
            match self.key_opens(other, text, eof, cx) {
                Is::Yes => {
                    self.style.arguments = Arguments::Tags(*other);
                    self.repaired = true;
                    return Ok(*other);
                }
                Is::Open => open = true,
                Is::No => {}
            }
        }
        if open && !eof { Err(()) } else { Ok(tags) }
    }

    /// Whether an argument begins at the position, in a tag of this style.
    pub(super) fn key_opens(&self, tags: &TagStyle, text: &str, eof: bool, cx: &Cx<'_>) -> Is {
        let found = is(self.rest(text), tags.key.open());
        if !tags.known || found != Is::Yes {
            return found;
        }
        let behind = rest(text, self.pos + tags.key.open().len());
        match head::name(&tags.key, behind, eof) {
            head::Found::Name(found) => {
                let has = self.properties(cx).is_some_and(|all| all.contains_key(found.name.as_ref()));
                if has { Is::Yes } else { Is::No }
            }
            head::Found::More => Is::Open,
            head::Found::No(_) => Is::No,
        }
    }

    /// Whether the tag that repeats the tool's name stands after white space, which ends a call whose name is a tag; then it
    /// is passed over.
    pub(super) fn own_end(&mut self, text: &str, eof: bool) -> Is {
        let Some(name) = self.name.as_deref().filter(|_| head::is_tag(&self.form.head) && !self.ended) else {
            return Is::No;
        };
        let Some(at) = ahead(text, self.pos, &[]) else { return Is::No };
        match is(rest(text, at), &format!("</{name}>")) {
            Is::Yes => {
                self.pos = at + name.len() + "</>".len();
                self.ended = true;
                self.part = Part::End;
                Is::Yes
            }
            Is::Open if eof => Is::No,
            found => found,
        }
    }

    /// Whether a call whose name is a tag stands there without a delimiter and has not ended.
    pub(super) fn needs_end(&self) -> bool {
        self.unmarked && head::is_tag(&self.form.head) && !self.ended
    }

    /// Passes over a tag that means nothing between arguments: one around all of them, or an end that repeats the tool's name.
    pub(super) fn idle_tag(&mut self, text: &str, eof: bool, cx: &Cx<'_>) -> Is {
        let mixes = self.form.tags().is_some_and(|tags| !tags.others.is_empty());
        let behind = self.rest(text);
        let Some(name) = self.name.as_deref().filter(|name| mixes && cx.offered.contains(name)) else {
            return Is::No;
        };
        let end = (self.params > 0 && self.stray.is_none()).then(|| format!("</{name}>"));
        let around = self.around;
        // With what ends it, where it is one around all arguments.
        let mut tags: Vec<(&str, Option<&'static str>)> = Vec::new();
        if self.params == 0 {
            tags.extend(AROUND.iter().map(|(tag, close)| (*tag, Some(*close))));
        }
        tags.extend(around.into_iter().chain(end.as_deref()).map(|tag| (tag, None)));
        let mut open = false;
        for (tag, close) in tags {
            match is(behind, tag) {
                Is::Yes => {
                    self.pos += tag.len();
                    self.around = close.or(around.filter(|end| *end != tag));
                    self.repaired = true;
                    return Is::Yes;
                }
                Is::Open => open |= !behind.is_empty(),
                Is::No => {}
            }
        }
        if open && !eof { Is::Open } else { Is::No }
    }
}
