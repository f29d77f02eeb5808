//! The family of bodies that name the tool first: `<function=NAME>`, `NAME[ARGS]`, `call:NAME{`, `NAME(`, and then
//! its arguments, in tags, as a JSON object or as literals.

mod after;
mod arguments;
mod head;
mod key;
mod lead;
mod nested;
mod opened;
mod stop;
mod tags;
mod value;
mod variant;
mod write;

use std::collections::BTreeSet;

pub use head::Head;
pub(super) use head::is_tag;
use head::{Found, MAX_NAME};
pub(super) use lead::lead;
use lead::lead_is;
use nested::{Balance, Nested};
use opened::{Search, Tags};
use stop::OTHER_ENDS;
pub use tags::TagStyle;
use value::Unwritten;

use super::{
    body::{Body, Cx, Is, Ready, Step, Unfinished, ahead, cut, is, is_any, rest},
    elements::End,
    json::JsonBody,
    literal::{LiteralStyle, Literals},
    offered::Offered,
    table::{DelimiterKind, Dialect},
    typing::Types,
};

/// How calls of one dialect are written.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct NamedStyle {
    /// Where the tool's name stands.
    pub head: Head,
    /// How its arguments are written.
    pub arguments: Arguments,
    /// What ends a call, in this order; each may be missing.
    pub end: &'static [&'static str],
    /// The calls are the elements of a list: `[f(), g()]`.
    pub list: bool,
}

/// What stands before a call whose result a program prints.
const PRINT: &str = "print(";

impl NamedStyle {
    /// A call whose arguments end it.
    pub const fn new(head: Head, arguments: Arguments) -> Self {
        Self { head, arguments, end: &[], list: false }
    }

    /// The style with this behind the arguments, in this order.
    pub const fn end(mut self, end: &'static [&'static str]) -> Self {
        self.end = end;
        self
    }

    /// The style with calls as the elements of a list.
    pub const fn in_list(mut self) -> Self {
        self.list = true;
        self
    }

    /// Calls are written as in a program.
    fn is_program(&self) -> bool {
        let Arguments::Literals(style) = self.arguments else { return false };
        self.head.open().is_empty() && style.close == b')'
    }
}

/// How arguments are written. A JSON object is read in the place of tags as well.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Arguments {
    /// A JSON object.
    Json,
    /// A tag for each, with its value as text, typed by the tool's schema.
    Tags(TagStyle),
    /// Pairs of names and literals.
    Literals(LiteralStyle),
}

/// Reads one body as it comes in. Positions are offsets into the text that is handed to [`Body::feed`].
#[derive(Debug)]
pub(super) struct NamedBody {
    row: &'static Dialect,
    /// How the form has it, and how this call is written: its arguments may be in other tags.
    form: NamedStyle,
    style: NamedStyle,
    /// It stands in a wrapper, in which more calls may follow.
    wrapped: bool,
    /// No delimiter stands before it: the name has to be that of an offered tool.
    bare: bool,
    /// Nor does a word: its line has to end with it.
    unmarked: bool,
    /// Nothing but a line end stands between the name and the arguments: they have to be those of the tool.
    unsure: bool,
    pos: usize,
    part: Part,
    /// Where the part that is being read begins.
    start: usize,
    /// The list of calls has been opened.
    listed: bool,
    /// The call stands in one that prints what it gives.
    printed: bool,
    name: Option<String>,
    json: Option<Box<JsonBody>>,
    literals: Option<Literals>,
    types: Types,
    /// The end of the value, where it repeats the argument's name.
    value_end: Option<String>,
    /// Looks for the end of a value that may be a tree.
    element: Option<End>,
    /// The name of the argument whose value is being read.
    key: String,
    /// The names of the arguments that the call has so far, that one among them.
    keys: BTreeSet<String>,
    /// Tags that are open in the value.
    nested: Nested,
    /// The value stands in a section of character data.
    cdata: bool,
    /// What ends the tag that stands around all arguments.
    around: Option<&'static str>,
    /// The tag says that the value is written as JSON.
    is_json: bool,
    /// Looks for a tag of the argument's own name in the value.
    own_tag: Search,
    /// For tags of other dialects.
    other_tags: [Search; OTHER_ENDS.len()],
    /// The tags in the value whose names begin as that of its end.
    longer_tags: Tags,
    /// Tags in the value with the name of its end.
    own_tags: Balance,
    /// Tags in the value with the name of the call's end.
    call_tags: Balance,
    /// The last value, once it has ended, until it is in `arguments`.
    unwritten: Option<Unwritten>,
    /// The arguments as far as they are known, as JSON text.
    arguments: String,
    /// They are a whole object.
    closed: bool,
    /// What ends the call has been read.
    ended: bool,
    /// How much of the arguments stood before the one whose value has lost its opening tag: without an end of its own it
    /// is none.
    unopened: Option<usize>,
    params: usize,
    /// The first argument is none that the tool has, and may hold all the others: nothing of it is handed on before
    /// that is known.
    wraps: bool,
    repaired: bool,
    /// Where text that is no argument begins, after the last one.
    stray: Option<usize>,
    /// How much of the value, from `start` on, is already in `arguments`.
    taken: Option<usize>,
    sent: usize,
    /// How much of the arguments may be handed on.
    certain: usize,
    begun: Option<usize>,
    ready: Vec<Ready>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before a call's head.
    Call,
    /// In the tool's name.
    Name,
    /// Before the arguments.
    Arguments,
    /// In a JSON object.
    Json,
    /// In literals.
    Literals,
    /// Between tags.
    Between,
    /// In an argument's name.
    Key,
    /// In a value.
    Value,
    /// After the arguments.
    End,
    /// After the call.
    Tail,
}

impl NamedBody {
    pub(super) fn new(
        row: &'static Dialect,
        style: NamedStyle,
        at: usize,
        kind: DelimiterKind,
        unmarked: bool,
        recipient: Option<String>,
    ) -> Self {
        Self {
            row,
            form: style,
            style,
            wrapped: !matches!(kind, DelimiterKind::Call | DelimiterKind::Inner),
            bare: unmarked || kind == DelimiterKind::Line,
            unmarked,
            unsure: false,
            pos: at,
            part: Part::Call,
            start: at,
            listed: false,
            printed: false,
            name: recipient,
            json: None,
            literals: None,
            types: Types::of(None, ""),
            value_end: None,
            element: None,
            key: String::new(),
            keys: BTreeSet::new(),
            nested: Nested::default(),
            cdata: false,
            around: None,
            is_json: false,
            own_tag: Search::default(),
            other_tags: Default::default(),
            longer_tags: Tags::default(),
            own_tags: Balance::default(),
            call_tags: Balance::default(),
            unwritten: None,
            arguments: String::new(),
            closed: false,
            ended: false,
            unopened: None,
            params: 0,
            wraps: false,
            repaired: false,
            stray: None,
            taken: None,
            sent: 0,
            certain: usize::MAX,
            begun: None,
            ready: Vec::new(),
        }
    }

    fn rest<'a>(&self, text: &'a str) -> &'a str {
        rest(text, self.pos)
    }

    fn skip_blank(&mut self, text: &str) {
        let rest = self.rest(text);
        self.pos += rest.len() - rest.trim_start().len();
    }

    fn call(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        self.skip_blank(text);
        if self.style.list && !self.listed && self.rest(text).starts_with('[') {
            self.listed = true;
            self.pos += 1;
            self.skip_blank(text);
        }
        let open = self.style.head.open();
        match is(self.rest(text), open) {
            Is::Yes => {
                self.pos += open.len();
                match self.is_printed(self.rest(text), eof, cx.offered) {
                    Ok(printed) => {
                        self.printed = printed;
                        self.pos += if printed { PRINT.len() } else { 0 };
                    }
                    Err(()) => return Some(Step::More),
                }
                self.start = self.pos;
                self.part = Part::Name;
                self.name.take().and_then(|name| self.begin(self.recipient(name, cx), cx))
            }
            Is::Open if !eof => Some(Step::More),
            _ => Some(Step::Reject(self.pos)),
        }
    }

    /// Whether the call of an offered tool stands in one that prints what it gives; an error while more text decides.
    fn is_printed(&self, text: &str, eof: bool, offered: &Offered) -> Result<bool, ()> {
        if !self.style.is_program() || self.unmarked || is(text, PRINT) == Is::No {
            return Ok(false);
        }
        text.strip_prefix(PRINT)
            .map_or(if eof { Ok(false) } else { Err(()) }, |call| offered.calls(call, eof))
    }

    /// The tool that a header addresses, without the namespace that its dialect puts before it.
    fn recipient(&self, name: String, cx: &Cx<'_>) -> String {
        let namespace = self.row.header.map_or("", |header| header.namespace);
        let bare = name.strip_prefix(namespace).filter(|_| !namespace.is_empty());
        match bare {
            Some(bare) if cx.offered.contains(bare) || !cx.offered.contains(&name) => bare.to_owned(),
            _ => name,
        }
    }

    fn named(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let behind = rest(text, self.start);
        let before_object = head::before_object(&self.style.head, behind);
        let mended = before_object.is_some();
        let named = match before_object.map_or_else(|| head::name(&self.style.head, behind, eof), Found::Name)
        {
            Found::Name(named) => named,
            Found::More => return Some(Step::More),
            Found::No(at) => return self.named_alone(text, self.start + at, eof, cx),
        };
        let (name, closed) = (named.name.into_owned(), named.tag.trim_end().ends_with('/'));
        self.pos = self.start + named.end;
        let step = self.begin(name, cx);
        self.repaired |= mended;
        if closed && step.is_none() {
            if !self.wrapped && !self.name.as_deref().is_some_and(|name| cx.offered.contains(name)) {
                // As elements of any document do.
                return Some(Step::Reject(self.pos));
            }
            // A tag that closes itself: a call without arguments.
            self.ended = true;
            self.part = Part::End;
        }
        step
    }

    /// At what ends the name of a tool where its arguments should begin: the end of a call that has none, or none.
    fn named_alone(&mut self, text: &str, at: usize, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        let name = head::bare(&self.style.head, cut(text, self.start..at));
        let ended = match ahead(text, at, &[]) {
            Some(end) if cx.offered.contains(&name) => is_any(rest(text, end), self.ends()),
            _ => Is::No,
        };
        match ended {
            Is::Open if !eof => return Some(Step::More),
            Is::Open | Is::No => return Some(Step::Reject(at)),
            Is::Yes => {}
        }
        self.pos = at;
        let step = self.begin(name, cx);
        if step.is_none() {
            self.repaired = true;
            self.part = Part::End;
        }
        step
    }

    /// What ends a call, or all of them.
    fn ends(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.style.end.iter().chain(self.row.close).copied()
    }

    fn begin(&mut self, name: String, cx: &mut Cx<'_>) -> Option<Step> {
        let name = cx.offered.resolve(name);
        let known = self.bare || head::is_tag(&self.form.head);
        if name.is_empty() || name.contains(['{', '}', '\n']) || known && !cx.offered.contains(&name) {
            return Some(Step::Reject(self.pos));
        }
        self.style = self.form;
        self.arguments.clear();
        self.keys.clear();
        if !matches!(self.style.arguments, Arguments::Literals(_)) {
            self.arguments.push('{');
        }
        (self.params, self.sent, self.repaired, self.stray) = (0, 0, false, None);
        (self.closed, self.ended, self.wraps, self.unopened) = (false, false, false, None);
        // A word that names no tool may only introduce the call.
        let named = !head::is_plain(&self.style.head) || !cx.offered.is_named() || cx.offered.contains(&name);
        if !self.bare && named {
            self.begun = cx.begin(&name, self.row.name);
        }
        self.name = Some(name);
        self.part = Part::Arguments;
        None
    }

    /// Hands on what has come of the arguments.
    fn send(&mut self, cx: &mut Cx<'_>) {
        let Some(index) = self.begun.filter(|_| !self.wraps) else { return };
        let end = self.arguments.len().min(self.certain);
        cx.delta(index, cut(&self.arguments, self.sent..end));
        self.sent = end.max(self.sent);
    }
}

impl Body for NamedBody {
    fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        loop {
            let step = match self.part {
                Part::Call => self.call(text, eof, cx),
                Part::Name => self.named(text, eof, cx),
                Part::Arguments => self.arguments(text, eof, cx),
                Part::Json => self.json(text, eof, cx),
                Part::Literals => self.literals(text, eof, cx),
                Part::Between => self.between(text, eof, cx),
                Part::Key => self.key(text, eof, cx),
                Part::Value => self.value(text, eof, cx),
                Part::End => self.end(text, eof, cx),
                Part::Tail => self.after(text, eof),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn take_ready(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.ready)
    }

    fn unfinished(&mut self) -> Option<Unfinished> {
        let meant = self.is_meant() && !self.bare;
        self.name.take().map(|_| Unfinished { index: self.begun.take(), meant })
    }

    fn is_named(&self) -> bool {
        self.name.is_some()
    }

    fn is_meant(&self) -> bool {
        self.params > 0 || self.json.is_some() || self.literals.is_some()
    }

    fn keeps_ready(&self) -> bool {
        !self.bare
    }
}
