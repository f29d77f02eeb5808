//! Arguments in tags: where each begins, and what may stand between them.

use memchr::memchr;

use super::{
    Arguments, Balance, Head, MAX_NAME, NamedBody, NamedStyle, Nested, OTHER_ENDS, Part, head,
    opened::{Search, Tags},
};
use crate::{
    ParseOptions,
    body::{Cx, Is, Step, Tail, ahead, cut, is, is_any, rest, tail},
    elements::End,
    typing::{Shape, Types, quoted},
};

/// A tag for each argument, with its value as text.
#[derive(Debug, Clone, Copy)]
pub struct TagStyle {
    /// Where the argument's name stands.
    pub(crate) key: Head,
    /// What opens the value after the name, where that is a tag of its own; else empty.
    pub(crate) value: &'static str,
    /// What ends the value.
    pub(crate) end: &'static str,
    /// One line end on each side of the value belongs to the tags.
    pub(crate) framed: bool,
    /// Values are written on lines of their own.
    pub(crate) lines: bool,
    /// The end repeats the argument's name, and values may be trees of such elements.
    pub(crate) elements: bool,
    /// What the tag says of the value's type when it is rendered.
    pub(super) types: TypeAttribute,
    /// What may stand around the type of the value, before the value's own tag.
    kind: Option<&'static (&'static str, &'static str)>,
    /// A value may stand in a section of character data.
    cdata: bool,
    /// A value of which nothing states the type is the JSON that it can be read as.
    guessed: bool,
    /// Other tags in which models write the arguments of such calls.
    pub(super) others: &'static [TagStyle],
    /// Only an argument that the tool has is written so: nothing else tells its tag.
    pub(super) known: bool,
    /// What may stand around a JSON object in the place of all tags.
    object: Option<&'static (&'static str, &'static str)>,
}

/// How a tag states the type of its value.
#[derive(Debug, Clone, Copy)]
pub(super) enum TypeAttribute {
    None,
    /// As `type="number"`.
    Name,
    /// As `string="false"`.
    IsString,
}

impl TagStyle {
    /// A tag with the name, then the value, which line ends may frame.
    pub const fn new(key: Head, end: &'static str) -> Self {
        Self {
            key,
            value: "",
            end,
            framed: true,
            lines: false,
            elements: false,
            types: TypeAttribute::None,
            kind: None,
            cdata: false,
            guessed: false,
            others: &[],
            known: false,
            object: None,
        }
    }

    /// The style with values on lines of their own.
    pub const fn on_lines(mut self) -> Self {
        self.lines = true;
        self
    }

    /// The style with a tag of its own before the value.
    pub const fn value(mut self, value: &'static str) -> Self {
        self.value = value;
        self
    }

    /// The style with a tag, which may be missing, for the type of the value.
    pub const fn typed_by(mut self, tags: &'static (&'static str, &'static str)) -> Self {
        self.kind = Some(tags);
        self
    }

    /// The style with values that may stand in a section of character data: `<![CDATA[…]]>`.
    pub const fn cdata(mut self) -> Self {
        self.cdata = true;
        self
    }

    /// The style with values that are JSON where they can be read so and nothing states their type.
    pub const fn guessed(mut self) -> Self {
        self.guessed = true;
        self
    }

    /// The style with calls that may have one JSON object, between these delimiters, for all arguments.
    pub const fn object(mut self, delimiters: &'static (&'static str, &'static str)) -> Self {
        self.object = Some(delimiters);
        self
    }

    /// The style with values to which all of the text between the tags belongs.
    pub const fn verbatim(mut self) -> Self {
        self.framed = false;
        self
    }

    /// The style with tags that name the value's type: `type="number"`.
    pub const fn naming_type(mut self) -> Self {
        self.types = TypeAttribute::Name;
        self
    }

    /// The style with tags that state whether the value is a string: `string="false"`.
    pub const fn marking_strings(mut self) -> Self {
        self.types = TypeAttribute::IsString;
        self
    }

    /// The style of calls whose arguments may be written in these other tags.
    pub(crate) const fn or(mut self, others: &'static [Self]) -> Self {
        self.others = others;
        self
    }

    /// The style of tags that have the names of arguments, and nothing around them: `<level>3</level>`.
    pub(crate) const fn named() -> Self {
        let style = Self::new(Head::between("<", &[">"]), "</").elements().cdata();
        Self { framed: true, known: true, ..style }
    }

    /// The style whose ends repeat the name and whose values are trees.
    pub const fn elements(mut self) -> Self {
        self.framed = false;
        self.elements = true;
        self
    }
}

/// A section of character data of XML.
const CDATA: &str = "<![CDATA[";
pub(super) const CDATA_END: &str = "]]>";

impl TagStyle {
    /// The type that is stated in a tag here, and where that ends; an error while more text decides.
    fn kind_at<'t>(&self, text: &'t str, at: usize, eof: bool) -> Result<Option<(&'t str, usize)>, ()> {
        let (Some((open, close)), Some(at)) = (self.kind, ahead(text, at, &[])) else { return Ok(None) };
        let inside = match is(rest(text, at), open) {
            Is::Yes => rest(text, at + open.len()),
            Is::Open if !eof => return Err(()),
            Is::Open | Is::No => return Ok(None),
        };
        let area = cut(inside, 0..inside.floor_char_boundary(MAX_NAME));
        match area.find(close) {
            Some(end) => Ok(Some((cut(area, 0..end).trim(), at + open.len() + end + close.len()))),
            None if area.len() == inside.len() && area.len() < MAX_NAME && !eof => Err(()),
            None => Ok(None),
        }
    }
}

impl NamedStyle {
    pub(super) fn tags(&self) -> Option<TagStyle> {
        if let Arguments::Tags(tags) = self.arguments { Some(tags) } else { None }
    }
}

impl NamedBody {
    pub(super) fn tags(&self) -> Option<TagStyle> {
        self.style.tags()
    }

    /// How values are read whose type nothing states, among the rest.
    pub(super) fn parsing(&self, cx: &Cx<'_>) -> ParseOptions {
        let guess_types = cx.parsing.guess_types || self.tags().is_some_and(|tags| tags.guessed);
        ParseOptions { guess_types, ..cx.parsing }
    }

    /// The delimiters that may stand around an object with all arguments.
    pub(super) fn around_object(&self) -> Option<&'static (&'static str, &'static str)> {
        self.tags()?.object
    }

    pub(super) fn between(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let Some(tags) = self.tags() else { return Some(Step::Reject(self.pos)) };
        self.skip_blank(text);
        match self.own_end(text, eof) {
            Is::Yes => return None,
            Is::Open if !self.rest(text).is_empty() => return Some(Step::More),
            Is::Open | Is::No => {}
        }
        let behind = self.rest(text);
        // Where the tag of an argument begins as the end of the call does, the longer delimiter decides.
        let end = is_any(behind, self.style.end.iter().copied());
        let tags = match self.variant(tags, text, eof, cx) {
            Ok(tags) => tags,
            Err(()) => return Some(Step::More),
        };
        let param = if end == Is::Yes { Is::No } else { self.key_opens(&tags, text, eof, cx) };
        if end != Is::Yes && param != Is::Yes {
            match self.idle_tag(text, eof, cx) {
                Is::Yes => return None,
                Is::Open => return Some(Step::More),
                Is::No => {}
            }
        }
        if param == Is::Yes && end != Is::Open {
            self.pos += tags.key.open().len();
            self.start = self.pos;
            self.part = Part::Key;
            self.repaired |= self.stray.take().is_some();
            return None;
        }
        if end == Is::Yes {
            let offered =
                |name: &str| cx.offered.contains(name) && !(self.unmarked && cx.offered.requires(name));
            let offered = || self.name.as_deref().is_some_and(offered);
            if self.params == 0
                && (self.unmarked || !self.wrapped)
                && head::is_plain(&self.style.head)
                && !offered()
            {
                // A word between delimiters is a call only of a tool that is there: else they are just mentioned.
                return Some(Step::Reject(self.pos));
            }
            self.repaired |= self.stray.take().is_some();
            self.ended = true;
            self.part = Part::End;
            return None;
        }
        match self.unopened_key(tags, text, eof, cx) {
            Ok(Some(start)) => {
                self.start = start;
                self.part = Part::Key;
                self.repaired = true;
                return None;
            }
            Ok(None) => {}
            Err(()) => return Some(Step::More),
        }
        let tail = tail(text, self.pos, self.row.close, &[], eof);
        let next = is_any(behind, self.row.delimiters.iter().map(|delimiter| delimiter.text));
        let again = if tags.elements { Is::No } else { is(behind, tags.end) };
        let open = [param, end, next, again].contains(&Is::Open) || tail == Tail::Open;
        if open && !eof {
            return Some(Step::More);
        }
        if eof && param != Is::No && !behind.is_empty() {
            // It may be another argument that was cut off.
            return Some(Step::Reject(text.len()));
        }
        if self.needs_end() {
            return Some(Step::Reject(if eof { text.len() } else { self.pos }));
        }
        if let Tail::Closed(close_end) | Tail::Cut(close_end) = tail {
            // The wrapper is closed before the call: it is whole all the same.
            self.ended = matches!(tail, Tail::Closed(_));
            self.repaired |= !self.style.end.is_empty() || !self.ended;
            self.finish_call(text, self.pos, cx);
            self.pos = close_end;
            return Some(Step::Done(close_end));
        }
        if again == Is::Yes && self.value_ends_again(text) {
            return None;
        }
        // A call without any argument has to be ended, and nothing may stand in it: else a tag is just mentioned.
        if self.params == 0 {
            return Some(Step::Reject(if eof && open { text.len() } else { self.pos }));
        }
        if behind.is_empty() || next == Is::Yes || (eof && open) {
            // No end: what stands after the last argument is text.
            self.pos = self.stray.take().unwrap_or(self.pos);
            self.repaired |= !self.style.end.is_empty();
            self.finish_call(text, self.pos, cx);
            return Some(Step::Done(self.pos));
        }
        // Text between the arguments stays in the source if another tag of the call follows.
        self.stray.get_or_insert(self.pos);
        let skip = memchr(self.tag_byte(), behind.as_bytes().get(1..).unwrap_or_default());
        self.pos += skip.map_or(behind.len(), |at| at + 1);
        self.pos = text.floor_char_boundary(self.pos);
        None
    }

    /// At an end of a value outside values: one that is one too many, or the real one of the last value, which held
    /// an end and the text after it itself. False if that cannot be.
    fn value_ends_again(&mut self, text: &str) -> bool {
        if self.stray.is_some() {
            return self.reopen() && self.stray.take().is_some();
        }
        if self.opens_own_tag(text) && self.reopen() {
            return true;
        }
        self.pos += self.tags().map_or(0, |tags| tags.end.len());
        self.repaired = true;
        true
    }

    /// The byte with which every tag begins that can end a value.
    pub(super) fn tag_byte(&self) -> u8 {
        self.tags().and_then(|tags| tags.end.bytes().next()).unwrap_or(b'<')
    }

    pub(super) fn key(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let Some(tags) = self.tags() else { return Some(Step::Reject(self.pos)) };
        match self.doubled_key(tags, text, eof) {
            Is::Open => return Some(Step::More),
            Is::Yes => return None,
            Is::No => {}
        }
        let named = match head::name(&tags.key, rest(text, self.start), eof) {
            head::Found::Name(named) => named,
            head::Found::More => return Some(Step::More),
            head::Found::No(at) => return self.no_key(text, self.start + at, eof),
        };
        let Ok(mut at) = tags.after_key(text, self.start + named.end, eof) else { return Some(Step::More) };
        self.repaired |= at > self.start + named.end;
        let kind = match tags.kind_at(text, at, eof) {
            Ok(kind) => kind,
            Err(()) => return Some(Step::More),
        };
        if let Some((_, end)) = kind {
            at = end;
        }
        let mut unopened = false;
        if !tags.value.is_empty() {
            let Some(next) = ahead(text, at, &[]) else { return Some(Step::Reject(at)) };
            let inside = rest(text, next);
            let tag = is_any(inside, self.ends().chain([tags.end, tags.key.open()]));
            match is(inside, tags.value) {
                Is::Yes => at = next + tags.value.len(),
                Is::Open if !eof => return Some(Step::More),
                Is::No if tag == Is::No && !inside.is_empty() => (unopened, at) = (true, next),
                Is::No if tag == Is::Open && !eof => return Some(Step::More),
                Is::No => {
                    // A name without a value is no argument.
                    self.repaired = true;
                    self.pos = at;
                    self.part = Part::Between;
                    return None;
                }
                Is::Open => return Some(Step::Reject(text.len())),
            }
        }
        let key = named.name;
        if key.is_empty() {
            return Some(Step::Reject(at));
        }
        // White space around the section frames it.
        let section = ahead(text, at, &[]).filter(|_| tags.cdata);
        let cdata = section.map_or(Is::No, |section| is(rest(text, section), CDATA));
        if cdata == Is::Open && !eof {
            return Some(Step::More);
        }
        at = section.filter(|_| cdata == Is::Yes).map_or(at, |section| section + CDATA.len());
        self.settle_value(text, cx);
        let schema = self.name.as_deref().and_then(|name| cx.offered.schema(name));
        let shape = Shape::of(schema, schema).property(&key);
        let kind = kind.filter(|_| shape.types().is_none()).map(|(kind, _)| Types::named(kind));
        let stated = kind.or_else(|| markup_types(named.tag, &shape));
        self.types = stated.unwrap_or_else(|| self.parsing(cx).types(&shape));
        self.is_json = head::value(named.tag, "string").is_some_and(|string| string == "false");
        self.value_end = tags.elements.then(|| format!("{}{key}>", tags.end));
        self.cdata = cdata == Is::Yes;
        // Only what the schema says is text cannot be a tree.
        let text = shape.types().is_some_and(Types::is_text);
        self.element = (tags.elements && !text).then(|| End::new(at));
        self.unopened = unopened.then_some(self.arguments.len());
        if self.params > 0 {
            self.arguments.push_str(", ");
        }
        quoted(&key, &mut self.arguments);
        self.arguments.push_str(": ");
        self.key = key.into_owned();
        self.keys.insert(self.key.clone());
        self.wraps = self.params == 0 && self.properties(cx).is_some_and(|all| !all.contains_key(&self.key));
        self.params += 1;
        self.pos = at;
        self.start = at;
        self.taken = None;
        self.nested = Nested::default();
        self.own_tag = Search::from(at);
        self.other_tags = OTHER_ENDS.map(|_| Search::from(at));
        self.longer_tags = Tags::from(at);
        self.own_tags = Balance::from(at);
        self.call_tags = Balance::from(at);
        self.part = Part::Value;
        None
    }
}

/// The type that the tag itself states, where the schema leaves that open.
fn markup_types(tag: &str, shape: &Shape<'_>) -> Option<Types> {
    if let Some(string) = head::value(tag, "string") {
        let stated = if string == "true" { Some(Types::TEXT) } else { shape.types() };
        return Some(stated.unwrap_or(Types::ANY));
    }
    head::value(tag, "type").map(|kind| Types::named(&kind))
}
