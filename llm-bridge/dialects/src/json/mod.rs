//! The family of JSON bodies: `{"name": …, "arguments": {…}}`, alone, repeated or in an array.

use std::ops::Range;

mod call;
mod string;
mod structure;
mod style;
mod write;

pub use style::JsonStyle;

use super::{
    body::{Body, Cx, Lead, Ready, Step, Unfinished, ahead, cut, rest},
    envelope::{self, Key, LISTED, NESTED, SIDE},
    repair,
    table::Dialect,
};

/// Reads one body as it comes in. Positions are offsets into the text that is handed to [`JsonBody::feed`].
#[derive(Debug)]
pub(super) struct JsonBody {
    row: &'static Dialect,
    style: JsonStyle,
    /// No delimiter stands before it: shape and name have to prove it, early.
    bare: bool,
    /// An ordinary word stands before it.
    word: bool,
    /// Nothing but white space was written before it.
    alone: bool,
    /// It is the arguments only, of a call whose name stands before them and which these delimiters end.
    ends: Option<&'static [&'static str]>,
    pos: usize,
    stack: Vec<u8>,
    expect: Expect,
    /// The quote that ends the string being read.
    quote: Option<u8>,
    escaped: bool,
    string: usize,
    scalar: usize,
    comma: usize,
    /// The quote that ends the last string, until what stands after it proves that it does.
    closing: Option<usize>,
    /// Where the body stopped being strict JSON: deltas end here, however the text was cut.
    broken: Option<usize>,
    /// The object's escapes are those of JSON, and its members are there once: it need not be read again.
    plain: bool,
    array: bool,
    /// How many objects stand around the calls.
    around: usize,
    /// The string being read has three quotes on each side.
    tripled: bool,
    /// Commas or comments between the calls of an array had to be mended.
    mended: bool,
    /// How many of the calls have been marked as repaired where they are.
    marked: usize,
    /// Something other than a call was found in the body: none of it is one.
    foreign: bool,
    start: usize,
    object: usize,
    key: Range<usize>,
    key_is: Key,
    /// It has members that only other dialects have: it is a call only of an offered tool.
    unusual: bool,
    name: Option<String>,
    arguments: Option<usize>,
    arguments_end: Option<usize>,
    sent: usize,
    begun: Option<usize>,
    ready: Vec<Ready>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// The body's first bracket.
    Start,
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    Colon,
    Comma,
    Scalar,
    Comment(u8),
    /// A whole value has been read: more objects, or the closing delimiter.
    Tail,
}

impl JsonBody {
    pub(super) fn new(row: &'static Dialect, style: JsonStyle, at: usize, bare: bool, alone: bool) -> Self {
        Self {
            row,
            style,
            bare,
            word: false,
            alone,
            ends: None,
            pos: at,
            stack: Vec::new(),
            expect: Expect::Start,
            quote: None,
            escaped: false,
            string: 0,
            scalar: 0,
            comma: 0,
            closing: None,
            broken: None,
            plain: true,
            array: false,
            around: 0,
            tripled: false,
            mended: false,
            marked: 0,
            foreign: false,
            start: at,
            object: 0,
            key: 0..0,
            key_is: Key::Other,
            unusual: false,
            name: None,
            arguments: None,
            arguments_end: None,
            sent: 0,
            begun: None,
            ready: Vec::new(),
        }
    }

    /// The body after a word, if it stands after one.
    pub(super) fn after_word(self, word: bool) -> Self {
        Self { word, ..self }
    }

    /// The arguments of a call whose name is known, and whose index if it has been announced.
    pub(super) fn arguments(
        row: &'static Dialect,
        ends: &'static [&'static str],
        name: String,
        begun: Option<usize>,
        at: usize,
    ) -> Self {
        let body = Self::new(row, JsonStyle::PLAIN, at, false, false);
        Self { ends: Some(ends), name: Some(name), begun, ..body }
    }

    fn walk(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        let bytes = text.as_bytes();
        loop {
            if let Some(quote) = self.quote {
                match self.in_string(bytes, quote, cx.live) {
                    false => return self.ended(text, eof, cx),
                    true => {
                        if let Some(step) = self.string_end(text, cx) {
                            return step;
                        }
                        continue;
                    }
                }
            }
            if self.expect == Expect::Tail {
                match self.after(text, eof) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            let Some(&byte) = bytes.get(self.pos) else { return self.ended(text, eof, cx) };
            if let Expect::Comment(end) = self.expect {
                self.pos += 1;
                if byte == end && (end == b'\n' || self.pos >= 2 && bytes.get(self.pos - 2) == Some(&b'*')) {
                    self.expect = Expect::Comma;
                }
                if end == b'*' {
                    // The slash after `/`: `//` runs to the line's end, `/*` to `*/`.
                    self.expect = Expect::Comment(if byte == b'*' { b'/' } else { b'\n' });
                }
                continue;
            }
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    if self.expect == Expect::Scalar {
                        self.scalar_end(text);
                    }
                    self.pos += 1;
                }
                _ => {
                    if let Some(step) = self.structural(text, byte, eof, cx) {
                        return step;
                    }
                }
            }
        }
    }

    /// Directly inside the object that is the call.
    fn at_member(&self) -> bool {
        self.ends.is_none() && self.depth() == 1 + usize::from(self.array)
    }

    /// In an array, and in none of its elements.
    fn between(&self) -> bool {
        self.array && self.depth() == 1
    }

    /// The calls have ended; what stands around them has not.
    fn outside(&self) -> bool {
        self.around > 0 && self.depth() == 0 && !self.ready.is_empty()
    }

    /// How many brackets are open, but for those around the calls.
    fn depth(&self) -> usize {
        self.stack.len().saturating_sub(self.around)
    }

    /// What stands here makes the whole body none.
    fn refuse(&mut self) -> Step {
        self.foreign = true;
        Step::Reject(self.pos)
    }

    fn key_end(&mut self, text: &str) -> Option<Step> {
        let key = cut(text, self.key.clone());
        let before = cut(text, self.object + 1..self.key.start - 1);
        if LISTED.contains(&key)
            && before.trim().is_empty()
            && self.around == 0
            && !self.array
            && !self.style.keyed
        {
            self.around = 1;
            return None;
        }
        let (key_is, unusual) = envelope::key(self.style, key);
        self.key_is = key_is;
        self.unusual |= unusual;
        let again = match self.key_is {
            Key::Name => self.name.is_some(),
            Key::Arguments => self.arguments.is_some(),
            Key::Other => NESTED.contains(&key),
        };
        self.plain &= !again && !unusual;
        let fits = self.key_is != Key::Other || SIDE.contains(&key) || NESTED.contains(&key);
        (self.bare && !fits).then(|| self.refuse())
    }

    fn named(&mut self, name: String, cx: &mut Cx<'_>) -> Option<Step> {
        let name = cx.offered.resolve(name);
        if name.trim().is_empty() || (self.bare && !cx.offered.contains(&name)) {
            return Some(self.refuse());
        }
        self.name = Some(name);
        self.begin(cx);
        None
    }

    /// Notes where strict reading fails.
    fn expects(&mut self, strict: bool) {
        if !strict && self.broken.is_none() {
            self.broken = Some(self.safe());
        }
    }

    /// Up to where what has been read cannot turn out to need repair.
    fn safe(&self) -> usize {
        let end = match self.expect {
            Expect::Scalar => self.scalar,
            // The comma may turn out to be one too many.
            Expect::Key => self.comma,
            Expect::Value if self.stack.last() == Some(&b'[') => self.comma,
            // An empty string may turn out to be the first two of three quotes.
            Expect::Comma if self.pos == self.string + 2 => self.string,
            // A backslash may begin what is no escape.
            _ => self.pos - usize::from(self.escaped),
        };
        self.closing.map_or(end, |quote| end.min(quote))
    }

    fn value_end(&mut self) {
        if self.at_member() && self.key_is == Key::Arguments && self.arguments_end.is_none() {
            self.arguments_end = Some(self.pos);
        }
        self.expect = Expect::Comma;
    }

    fn scalar_end(&mut self, text: &str) {
        self.expects(repair::is_json(cut(text, self.scalar..self.pos)));
        self.value_end();
    }
}

impl Body for JsonBody {
    fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        let step = self.walk(text, eof, cx);
        if cx.live && matches!(step, Step::More) {
            self.send(text, cx);
        }
        step
    }

    fn take_ready(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.ready)
    }

    fn unfinished(&mut self) -> Option<Unfinished> {
        self.name.take().map(|_| Unfinished { index: self.begun.take(), meant: !self.bare })
    }

    fn is_named(&self) -> bool {
        self.name.is_some()
    }

    fn is_meant(&self) -> bool {
        // A bracket may be an ellipsis; a string in it is not.
        self.string > 0
    }

    fn keeps_ready(&self) -> bool {
        !self.bare && self.foreign().is_none()
    }

    /// Where the array begins of which not all elements are calls.
    fn foreign(&self) -> Option<usize> {
        (self.array && self.foreign).then_some(self.start)
    }
}

/// Whether a body of this family could begin so.
pub(super) fn lead(text: &str) -> Lead {
    match text.bytes().next() {
        Some(b'{') => Lead::Yes,
        // A word in the list is a call of another family.
        Some(b'[') => match ahead(text, 1, &[]).map(|at| rest(text, at).chars().next()) {
            Some(Some(first)) if first.is_alphabetic() || first == '_' => Lead::No,
            Some(None) => Lead::More,
            Some(Some(_)) | None => Lead::Yes,
        },
        Some(_) => Lead::No,
        None => Lead::More,
    }
}
