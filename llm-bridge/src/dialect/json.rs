//! The family of JSON bodies: `{"name": …, "arguments": {…}}`, alone, repeated or in an array.

use std::{borrow::Cow, fmt, ops::Range};

use memchr::memchr2;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    body::{Cx, Lead, Ready, Step, ahead, cut, tail},
    repair,
    table::Dialect,
};

/// Which members of the object name the tool and hold its arguments.
#[derive(Debug, Clone, Copy)]
pub struct JsonStyle {
    /// Keys whose value is the tool's name.
    pub names: &'static [&'static str],
    /// Keys whose value is the arguments: an object, or an object written as a string.
    pub arguments: &'static [&'static str],
}

impl JsonStyle {
    /// The usual keys.
    pub const PLAIN: Self =
        Self { names: &["name", "tool_name"], arguments: &["arguments", "parameters", "args"] };
}

/// Members that may stand beside name and arguments without meaning anything to the call.
const SIDE: &[&str] = &["id", "type", "tool_call_id", "index"];
/// The member that holds name and arguments where a model writes the shape of the OpenAI interface.
const NESTED: &str = "function";

/// Reads one body as it comes in. Positions are offsets into the text that is handed to [`JsonBody::feed`].
#[derive(Debug)]
pub(super) struct JsonBody {
    row: &'static Dialect,
    style: JsonStyle,
    /// No mark stands before it: shape and name have to prove it, early.
    bare: bool,
    /// Nothing but white space was written before it.
    alone: bool,
    pos: usize,
    stack: Vec<u8>,
    expect: Expect,
    /// The quote that ends the string being read.
    quote: Option<u8>,
    escaped: bool,
    string: usize,
    scalar: usize,
    comma: usize,
    /// Strict JSON so far.
    strict: bool,
    array: bool,
    object: usize,
    key: Range<usize>,
    key_is: Key,
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
    /// A whole value has been read: more objects, or the closing mark.
    Tail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Name,
    Arguments,
    Other,
}

impl JsonBody {
    pub(super) fn new(row: &'static Dialect, style: JsonStyle, at: usize, bare: bool, alone: bool) -> Self {
        Self {
            row,
            style,
            bare,
            alone,
            pos: at,
            stack: Vec::new(),
            expect: Expect::Start,
            quote: None,
            escaped: false,
            string: 0,
            scalar: 0,
            comma: 0,
            strict: true,
            array: false,
            object: 0,
            key: 0..0,
            key_is: Key::Other,
            name: None,
            arguments: None,
            arguments_end: None,
            sent: 0,
            begun: None,
            ready: Vec::new(),
        }
    }

    pub(super) fn take_ready(&mut self) -> Vec<Ready> {
        std::mem::take(&mut self.ready)
    }

    /// The name and index of the call that has begun and is not complete.
    pub(super) fn unfinished(&mut self) -> Option<(Option<usize>, bool)> {
        let named = self.name.take().is_some();
        named.then(|| (self.begun.take(), !self.bare))
    }

    pub(super) fn feed(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        let step = self.walk(text, eof, cx);
        if cx.live && matches!(step, Step::More) {
            self.send(text, cx);
        }
        step
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

    /// Goes on in a string; true when its end was reached.
    fn in_string(&mut self, bytes: &[u8], quote: u8, check: bool) -> bool {
        let from = self.pos;
        let mut ended = false;
        while let Some(rest) = bytes.get(self.pos..) {
            if self.escaped {
                if rest.is_empty() {
                    break;
                }
                self.escaped = false;
                self.pos += 1;
                continue;
            }
            let Some(hit) = memchr2(quote, b'\\', rest) else {
                self.pos = bytes.len();
                break;
            };
            self.pos += hit + 1;
            if rest.get(hit) == Some(&b'\\') {
                self.escaped = true;
            } else {
                ended = true;
                break;
            }
        }
        // Deltas must not hand on a string that strict JSON forbids; without them the whole is checked at the end.
        if check && bytes.get(from..self.pos).is_some_and(|part| part.iter().any(|byte| *byte < b' ')) {
            self.strict = false;
        }
        ended
    }

    fn string_end(&mut self, text: &str, cx: &mut Cx<'_>) -> Option<Step> {
        self.quote = None;
        let inner = self.string + 1..self.pos - 1;
        match self.expect {
            Expect::Colon => {
                if self.at_member() {
                    self.key = inner;
                    return self.key_end(text);
                }
                None
            }
            _ => {
                let name = self.at_member() && self.key_is == Key::Name;
                if name {
                    let quoted = cut(text, self.string..self.pos);
                    let name = serde_json::from_str(quoted).unwrap_or_else(|_| cut(text, inner).to_owned());
                    if let Some(step) = self.named(name, cx) {
                        return Some(step);
                    }
                }
                self.value_end();
                None
            }
        }
    }

    /// Directly inside the object that is the call.
    fn at_member(&self) -> bool {
        self.stack.len() == 1 + usize::from(self.array)
    }

    fn key_end(&mut self, text: &str) -> Option<Step> {
        let key = cut(text, self.key.clone());
        self.key_is = if self.style.names.contains(&key) {
            Key::Name
        } else if self.style.arguments.contains(&key) {
            Key::Arguments
        } else {
            Key::Other
        };
        let fits = self.key_is != Key::Other || SIDE.contains(&key) || key == NESTED;
        (self.bare && !fits).then_some(Step::Reject(self.pos))
    }

    fn named(&mut self, name: String, cx: &mut Cx<'_>) -> Option<Step> {
        if name.trim().is_empty() || (self.bare && !cx.offered.contains(&name)) {
            return Some(Step::Reject(self.pos));
        }
        // Without a mark a name proves little: the call begins when its arguments do.
        if cx.live && !self.bare && self.begun.is_none() {
            self.begun = Some(cx.begin(&name, self.row.name));
        }
        self.name = Some(name);
        None
    }

    fn value_end(&mut self) {
        if self.at_member() && self.key_is == Key::Arguments {
            self.arguments_end = Some(self.pos);
        }
        self.expect = Expect::Comma;
    }

    fn scalar_end(&mut self, text: &str) {
        if !repair::is_json(cut(text, self.scalar..self.pos)) {
            self.strict = false;
        }
        self.value_end();
    }

    fn structural(&mut self, text: &str, byte: u8, eof: bool, cx: &mut Cx<'_>) -> Option<Step> {
        use Expect::{Colon, Comma, Comment, Key as WantKey, KeyOrEnd, Scalar, Start, Value, ValueOrEnd};
        if self.expect == Scalar {
            if !matches!(byte, b',' | b'}' | b']' | b'"' | b'\'' | b'{' | b'[' | b'<' | b'#' | b':') {
                self.pos += 1;
                return None;
            }
            self.scalar_end(text);
        }
        match (byte, self.expect) {
            (b'{' | b'[', expect) => return self.open(byte, expect),
            (b'}' | b']', expect) => {
                self.strict &= matches!(expect, Comma | KeyOrEnd | ValueOrEnd);
                let fits = self.stack.last() == Some(&if byte == b'}' { b'{' } else { b'[' });
                if !fits {
                    return Some(Step::Reject(self.pos));
                }
                return self.close(text, cx);
            }
            (b'"' | b'\'', expect) => {
                self.strict &= byte == b'"' && matches!(expect, Value | ValueOrEnd | KeyOrEnd | WantKey);
                self.quote = Some(byte);
                self.string = self.pos;
                let key = matches!(expect, KeyOrEnd | WantKey)
                    || (expect == Comma && self.stack.last() == Some(&b'{'));
                if !key && self.arguments.is_none() && self.at_member() && self.key_is == Key::Arguments {
                    self.arguments = Some(self.pos);
                }
                self.expect = if key { Colon } else { Comma };
            }
            (b':', expect) => {
                self.strict &= expect == Colon;
                self.expect = Value;
            }
            (b',', expect) => {
                self.strict &= expect == Comma;
                self.comma = self.pos;
                self.expect = if self.stack.last() == Some(&b'{') { WantKey } else { Value };
            }
            (b'<', _) => return Some(self.stopped(text, eof, cx)),
            (b'/' | b'#', _) if !self.bare => {
                self.strict = false;
                self.expect = Comment(if byte == b'#' { b'\n' } else { b'*' });
            }
            (_, Value | ValueOrEnd) => {
                self.scalar = self.pos;
                self.expect = Scalar;
            }
            (_, Start) => return Some(Step::Reject(self.pos)),
            // Loose: an unquoted key, or text after a quote that was not escaped. Reading it is the repair's job.
            _ if self.bare => return Some(Step::Reject(self.pos)),
            (_, KeyOrEnd | WantKey) => {
                self.strict = false;
                self.expect = Colon;
            }
            _ => self.strict = false,
        }
        self.pos += 1;
        None
    }

    fn open(&mut self, byte: u8, expect: Expect) -> Option<Step> {
        let object = byte == b'{';
        let place = match self.stack.len() {
            0 => {
                self.array = !object;
                object
            }
            1 => self.array,
            _ => false,
        };
        if place && !object || self.stack.len() >= repair::MAX_DEPTH {
            return Some(Step::Reject(self.pos));
        }
        if place {
            self.object = self.pos;
            self.key_is = Key::Other;
            (self.name, self.arguments, self.arguments_end) = (None, None, None);
            self.sent = 0;
        } else if self.at_member() && self.key_is == Key::Arguments && self.arguments.is_none() {
            self.arguments = Some(self.pos);
            if !object {
                return Some(Step::Reject(self.pos));
            }
        }
        self.strict &= matches!(expect, Expect::Start | Expect::Value | Expect::ValueOrEnd);
        self.stack.push(byte);
        self.expect = if object { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
        self.pos += 1;
        None
    }

    fn close(&mut self, text: &str, cx: &mut Cx<'_>) -> Option<Step> {
        let member = self.at_member();
        self.stack.pop();
        self.pos += 1;
        if member {
            let range = self.object..self.pos;
            if !self.complete(cut(text, range), cx) {
                return Some(Step::Reject(self.pos));
            }
            self.expect = Expect::Comma;
        } else {
            self.value_end();
        }
        if self.stack.is_empty() {
            if self.ready.is_empty() {
                return Some(Step::Reject(self.pos));
            }
            self.expect = Expect::Tail;
        }
        None
    }

    /// Reads the whole object and notes the call; false if it is none.
    fn complete(&mut self, object: &str, cx: &mut Cx<'_>) -> bool {
        let Some(call) = envelope(object, self.style) else { return false };
        if self.bare {
            let shaped = call.has_arguments || (self.alone && !self.array && cx.offered.is_named());
            if !shaped || !cx.offered.contains(&call.name) {
                return false;
            }
        }
        let index = self.begun.take();
        if let Some(index) = index {
            let sent = self.arguments.map_or(0, |_| self.sent);
            let start = self.arguments.map_or(0, |start| start - self.object);
            let matches = sent == 0 || call.arguments.get(..sent) == object.get(start..start + sent);
            if !matches {
                self.begun = Some(index);
                return false;
            }
            cx.delta(index, cut(&call.arguments, sent..call.arguments.len()));
        }
        self.ready.push(Ready {
            name: call.name,
            arguments: call.arguments,
            repaired: call.repaired,
            end: self.pos,
            index,
            bare_name: !call.has_arguments && self.bare,
        });
        self.name = None;
        true
    }

    /// What follows the value: closing marks, another object, or other text.
    fn after(&mut self, text: &str, eof: bool) -> Option<Step> {
        let (end, closed, more) = tail(text, self.pos, self.row.close, &[b'}', b']', b',', b';']);
        if more && !eof {
            return Some(Step::More);
        }
        let alone = self.ready.last().is_some_and(|ready| ready.bare_name);
        if closed {
            return Some(Step::Done(end));
        }
        let next = ahead(text, self.pos, b",;");
        if alone && next != Some(text.len()) {
            return Some(Step::Reject(self.pos));
        }
        if next == Some(text.len()) && !eof {
            return Some(Step::More);
        }
        if let Some(next) = next
            && text.as_bytes().get(next) == Some(&b'{')
            && !self.bare
            && !self.array
        {
            self.pos = next;
            self.expect = Expect::Start;
            return None;
        }
        Some(Step::Done(self.pos))
    }

    /// A `<` outside a string: the closing mark came too early, or another call begins.
    fn stopped(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        let (end, closed, more) = tail(text, self.pos, self.row.close, &[]);
        if more && !eof {
            return Step::More;
        }
        if closed && !self.bare {
            let object = self.object..self.pos;
            let stop = self.pos;
            if let Some(fixed) = repair::closed(cut(text, object)) {
                self.pos = end;
                if self.complete_fixed(&fixed, cx) {
                    return Step::Done(end);
                }
                self.pos = stop;
            }
        }
        Step::Reject(self.pos)
    }

    fn complete_fixed(&mut self, fixed: &str, cx: &mut Cx<'_>) -> bool {
        // Deltas were cut from the source, which the repair may have changed before them.
        if self.begun.is_some() && self.sent > 0 {
            return false;
        }
        let done = self.complete(fixed, cx);
        if done && let Some(ready) = self.ready.last_mut() {
            ready.repaired = true;
        }
        done
    }

    /// The text is at its end in the middle of the body.
    fn ended(&mut self, text: &str, eof: bool, cx: &mut Cx<'_>) -> Step {
        if !eof {
            return Step::More;
        }
        let end = text.len();
        if self.bare {
            return Step::Reject(end);
        }
        if self.quote.is_some() {
            // A quote that was not escaped may have swallowed the closing mark: read up to the first one.
            let body = cut(text, self.object..end);
            let close = self.row.close.iter().find_map(|close| Some((body.find(close)?, close.len())));
            if let Some((at, len)) = close {
                let stop = self.object + at + len;
                let fixed = repair::closed(cut(body, 0..at));
                let pos = std::mem::replace(&mut self.pos, stop);
                if fixed.is_some_and(|fixed| self.complete_fixed(&fixed, cx)) {
                    return Step::Done(stop);
                }
                self.pos = pos;
            }
        } else if self.arguments_end.is_some() && self.name.is_some() && self.at_member() {
            // The arguments are whole; only the last brackets are missing.
            self.pos = end;
            let object = cut(text, self.object..end);
            if repair::closed(object).is_some_and(|fixed| self.complete_fixed(&fixed, cx)) {
                return Step::Done(end);
            }
        }
        Step::Reject(end)
    }

    /// Hands on what has come of the arguments, as far as it is strict.
    fn send(&mut self, text: &str, cx: &mut Cx<'_>) {
        let Some(start) = self.arguments else { return };
        let object = text.as_bytes().get(start) == Some(&b'{');
        if !object || !self.strict {
            return;
        }
        if self.begun.is_none() {
            let Some(name) = &self.name else { return };
            self.begun = Some(cx.begin(name, self.row.name));
        }
        let safe = match self.expect {
            Expect::Scalar => self.scalar,
            // The comma may turn out to be one too many.
            Expect::Key => self.comma,
            Expect::Value if self.stack.last() == Some(&b'[') => self.comma,
            _ => self.pos,
        };
        let safe = self.arguments_end.map_or(safe, |end| end.min(safe));
        if let (Some(index), true) = (self.begun, safe > start + self.sent) {
            cx.delta(index, cut(text, start + self.sent..safe));
            self.sent = safe - start;
        }
    }
}

struct Envelope {
    name: String,
    arguments: String,
    has_arguments: bool,
    repaired: bool,
}

/// Reads one whole object, strictly if that is possible.
fn envelope(text: &str, style: JsonStyle) -> Option<Envelope> {
    if let Ok(members) = serde_json::from_str::<Members<'_>>(text) {
        return pick(members, style, false);
    }
    let fixed = repair::value(text)?;
    pick(serde_json::from_str(&fixed).ok()?, style, true)
}

fn pick(members: Members<'_>, style: JsonStyle, repaired: bool) -> Option<Envelope> {
    let mut name = None;
    let mut arguments = None;
    let mut unknown = false;
    for (key, value) in members.0 {
        if style.names.contains(&&*key) {
            name = serde_json::from_str::<String>(value.get()).ok();
        } else if style.arguments.contains(&&*key) {
            arguments = Some(value.get());
        } else if key == NESTED {
            match serde_json::from_str::<Members<'_>>(value.get()) {
                Ok(inner) if !inner.0.iter().any(|(key, _)| key == NESTED) => {
                    return pick(inner, style, repaired);
                }
                _ => name = serde_json::from_str::<String>(value.get()).ok(),
            }
        } else {
            unknown |= !SIDE.contains(&&*key);
        }
    }
    let name = name.filter(|name| !name.trim().is_empty())?;
    let has_arguments = arguments.is_some();
    let (arguments, mended) = match arguments {
        // Other members may be the arguments themselves; a call without them would lose them.
        None if unknown => return None,
        None => ("{}".into(), false),
        Some(raw) => object(raw)?,
    };
    Some(Envelope { name, arguments, has_arguments, repaired: repaired || mended })
}

/// The arguments as the text of an object.
fn object(raw: &str) -> Option<(String, bool)> {
    match raw.bytes().next()? {
        b'{' => Some((raw.to_owned(), false)),
        b'n' => Some(("{}".into(), false)),
        b'"' => {
            let text = serde_json::from_str::<String>(raw).ok()?;
            let text = text.trim();
            if text.is_empty() || text == "null" {
                return Some(("{}".into(), false));
            }
            if !text.starts_with('{') {
                return None;
            }
            if repair::is_json(text) {
                Some((text.to_owned(), false))
            } else {
                Some((repair::value(text)?, true))
            }
        }
        _ => None,
    }
}

/// The members of an object in their order, values as they were written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((Cow::Owned(key), value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Walk)
    }
}

/// Whether a body of this family could begin so.
pub(super) fn lead(text: &str) -> Lead {
    match text.bytes().next() {
        Some(b'{' | b'[') => Lead::Yes,
        Some(_) => Lead::No,
        None => Lead::More,
    }
}
