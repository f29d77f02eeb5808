//! JSON of clients and model servers: objects whose fields are read one by one and whose other fields are kept.
//!
//! A client's request is read with [`Object`]: strictly, with the path of the field in each error. A model server's answer is read
//! with [`Open`]: in one pass, and a field of an unexpected type is taken as missing.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Value, value::RawValue};

use crate::{BadRequest, Passing, Provider, RawJson, number::whole_number};

/// The maximum depth of a request's body; what is parsed into a [`Value`] later never exceeds the limit of `serde_json`.
const MAX_DEPTH: usize = 100;
/// The maximum number of items in an array of a request, but for those in schemas.
const MAX_ITEMS: usize = 16_384;
/// The maximum number of fields in an object of a request, but for those in schemas.
const MAX_FIELDS: usize = 1024;

/// An object of a client's request, from which fields are taken.
#[derive(Debug)]
pub struct Object<'a> {
    source: &'a str,
    path: String,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// A value of a client's request.
#[derive(Debug)]
pub struct Field<'a> {
    path: String,
    value: &'a RawValue,
}

impl<'a> Object<'a> {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// If it is not a JSON object in UTF-8, or is nested too deeply.
    pub fn from_body(body: &'a [u8]) -> Result<Self, BadRequest> {
        let bad = |message: String| BadRequest::new("body", message);
        let text = std::str::from_utf8(body).map_err(|_| bad("the body has to be UTF-8".to_owned()))?;
        if is_deep(text) {
            return Err(bad(format!("the body is nested more than {MAX_DEPTH} deep")));
        }
        let value: &RawValue =
            serde_json::from_str(text).map_err(|error| bad(format!("the body has to be JSON: {error}")))?;
        if !value.get().starts_with('{') {
            return Err(bad("the request has to be a JSON object".to_owned()));
        }
        Field { path: String::new(), value }.object()
    }

    /// The text of the object.
    pub fn source(&self) -> &'a str {
        self.source
    }

    /// Takes a field; null is none. Of fields of one name the last counts.
    pub fn take(&mut self, name: &str) -> Option<Field<'a>> {
        let value = self.take_raw(name)?;
        (value.get() != "null").then(|| Field { path: self.path_of(name), value })
    }

    fn take_raw(&mut self, name: &str) -> Option<&'a RawValue> {
        let mut last = None;
        self.fields.retain(|(field, value)| {
            let found = field == name;
            if found {
                last = Some(*value);
            }
            !found
        });
        last
    }

    /// Takes a field that is a string.
    ///
    /// # Errors
    /// If it is something else. This goes for the following, too.
    pub fn string(&mut self, name: &str) -> Result<Option<String>, BadRequest> {
        self.take(name).as_ref().map(Field::string).transpose()
    }

    /// Takes a field that is true or false.
    pub fn bool(&mut self, name: &str) -> Result<Option<bool>, BadRequest> {
        self.take(name).as_ref().map(Field::bool).transpose()
    }

    /// Takes a field that is a number.
    pub fn float(&mut self, name: &str) -> Result<Option<f64>, BadRequest> {
        self.take(name).as_ref().map(Field::float).transpose()
    }

    /// Takes a field that is an integer.
    pub fn integer(&mut self, name: &str) -> Result<Option<i64>, BadRequest> {
        self.take(name).as_ref().map(Field::integer).transpose()
    }

    /// Takes a field that is an object.
    pub fn object(&mut self, name: &str) -> Result<Option<Object<'a>>, BadRequest> {
        self.take(name).map(Field::object).transpose()
    }

    /// Takes a field that is an array; its items, or none.
    pub fn items(&mut self, name: &str) -> Result<Vec<Field<'a>>, BadRequest> {
        Ok(self.take(name).as_ref().map(Field::items).transpose()?.unwrap_or_default())
    }

    /// Takes a field that may be any JSON.
    pub fn value(&mut self, name: &str) -> Result<Option<Value>, BadRequest> {
        self.take(name).as_ref().map(Field::value).transpose()
    }

    /// Keeps what has not been taken of an object that is itself a field of that name.
    pub fn leave(mut self, name: &'static str, passing: &mut Passing) {
        self.fields.retain(|(_, value)| value.get() != "null");
        if !self.fields.is_empty() {
            passing.push(name, RawJson::of(&Entries(&self.fields)));
        }
    }

    /// The fields that have not been taken; nulls are none.
    pub fn rest(self, api: Provider) -> Passing {
        self.rest_with(Passing::of(api))
    }

    /// The fields that have not been taken, behind those of `passing`.
    pub fn rest_with(self, mut passing: Passing) -> Passing {
        for (name, value) in self.fields {
            if value.get() != "null" {
                passing.push(name.into_owned(), value);
            }
        }
        passing
    }

    /// An error about a field: `message` follows its path.
    pub fn bad(&self, name: &str, message: impl fmt::Display) -> BadRequest {
        let path = self.path_of(name);
        BadRequest { message: format!("`{path}` {message}"), param: path.into() }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl<'a> Field<'a> {
    /// The text of the value.
    pub fn source(&self) -> &'a RawValue {
        self.value
    }

    /// An error about this field: `message` follows its path.
    pub fn bad(&self, message: impl fmt::Display) -> BadRequest {
        BadRequest { message: format!("`{}` {message}", self.path), param: self.path.clone().into() }
    }

    /// Whether it is a string.
    pub fn is_string(&self) -> bool {
        self.value.get().starts_with('"')
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.value.get().starts_with('{')
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        self.value.get().starts_with('[')
    }

    /// The string that it is.
    ///
    /// # Errors
    /// If it is something else. This goes for the following, too.
    pub fn string(&self) -> Result<String, BadRequest> {
        match serde_json::from_str(self.value.get()) {
            Ok(text) => Ok(text),
            Err(error) if self.is_string() => Err(self.bad(format_args!("is no text: {error}"))),
            Err(_) => Err(self.bad("has to be a string")),
        }
    }

    /// The boolean that it is.
    pub fn bool(&self) -> Result<bool, BadRequest> {
        self.parse("has to be true or false")
    }

    /// The number that it is.
    pub fn float(&self) -> Result<f64, BadRequest> {
        self.parse("has to be a number")
    }

    /// The integer that it is; `2.0` is one.
    pub fn integer(&self) -> Result<i64, BadRequest> {
        const WHAT: &str = "has to be a whole number";
        let text = self.value.get();
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let number = whole_number(&mut serde_json::Deserializer::from_str(digits))
            .ok()
            .and_then(|number| i64::try_from(number).ok())
            .ok_or_else(|| self.bad(WHAT))?;
        Ok(if is_negative { -number } else { number })
    }

    /// The object that it is.
    pub fn object(self) -> Result<Object<'a>, BadRequest> {
        if !self.is_object() {
            return Err(self.bad("has to be an object"));
        }
        let source = self.value.get();
        match serde_json::from_str::<AllFields<'a>>(source) {
            Ok(AllFields(fields)) => Ok(Object { source, path: self.path, fields }),
            Err(error) => Err(self.bad(format_args!("cannot be read: {error}"))),
        }
    }

    /// The items of the array that it is.
    pub fn items(&self) -> Result<Vec<Field<'a>>, BadRequest> {
        if !self.is_array() {
            return Err(self.bad("has to be an array"));
        }
        let items = serde_json::from_str::<Vec<&'a RawValue>>(self.value.get())
            .map_err(|error| self.bad(format_args!("cannot be read: {error}")))?;
        if items.len() > MAX_ITEMS {
            return Err(self.bad(format_args!("has more than {MAX_ITEMS} items")));
        }
        let items = items.into_iter().enumerate();
        Ok(items.map(|(at, value)| Field { path: format!("{}[{at}]", self.path), value }).collect())
    }

    /// The value that it is.
    pub fn value(&self) -> Result<Value, BadRequest> {
        serde_json::from_str(self.value.get())
            .map_err(|error| self.bad(format_args!("cannot be read: {error}")))
    }

    fn parse<T: DeserializeOwned>(&self, what: &str) -> Result<T, BadRequest> {
        serde_json::from_str(self.value.get()).map_err(|_| self.bad(what))
    }
}

/// Whether brackets are nested more deeply than [`MAX_DEPTH`]. It runs before anything that could recurse.
fn is_deep(json: &str) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        if is_text {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// A field's name, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct AllFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for AllFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;

        impl<'de> Visitor<'de> for Visit {
            type Value = AllFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    if fields.len() >= MAX_FIELDS {
                        let message = format_args!("it has more than {MAX_FIELDS} fields");
                        return Err(serde::de::Error::custom(message));
                    }
                    fields.push((name, map.next_value()?));
                }
                Ok(AllFields(fields))
            }
        }

        deserializer.deserialize_map(Visit)
    }
}

/// Writes fields as an object.
pub(crate) struct Entries<'e, 'a>(pub(crate) &'e [(Cow<'a, str>, &'a RawValue)]);

impl Serialize for Entries<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Writes the fields of a raw object; nothing for anything else. For `#[serde(flatten)]`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leftover<'a>(pub(crate) Option<&'a RawJson>);

impl Serialize for Leftover<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = self.0.and_then(|json| serde_json::from_str::<AllFields<'_>>(json.get()).ok());
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in object.iter().flat_map(|object| &object.0) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The known fields of an object.
pub(crate) trait Known<'de>: Default {
    /// Reads the value of a field from `map`, if the field is known; otherwise reads nothing and returns false.
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// An object of a model server: its known fields, and the others as they are, without nulls. Anything but an object is one without
/// fields.
#[derive(Debug, Default)]
pub(crate) struct Open<'a, T> {
    pub(crate) known: T,
    pub(crate) rest: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'de, T: Known<'de>> Deserialize<'de> for Open<'de, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<T>(PhantomData<T>);

        impl<'de, T: Known<'de>> Visitor<'de> for Visit<T> {
            type Value = Open<'de, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut open = Open { known: T::default(), rest: Vec::new() };
                while let Some(Name(name)) = map.next_key()? {
                    if open.known.read(&name, &mut map)? {
                        continue;
                    }
                    let value: &'de RawValue = map.next_value()?;
                    if value.get() != "null" {
                        open.rest.push((name, value));
                    }
                }
                Ok(open)
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                Ok(Open { known: T::default(), rest: Vec::new() })
            }

            fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Self::Value, E> {
                self.visit_unit()
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                self.visit_unit()
            }
        }

        deserializer.deserialize_any(Visit(PhantomData))
    }
}

/// A text of a model server; empty if there is none or it is something else. Half a character, as from servers that cut a text
/// anywhere, becomes U+FFFD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(text_of(value).unwrap_or_default()))
    }
}

/// The text that a value is.
pub(crate) fn text_of(value: &RawValue) -> Option<String> {
    let json = value.get();
    if !json.starts_with('"') {
        return None;
    }
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&replace_halves(json))).ok()
}

/// A count of a model server: `2.0` is 2, and anything else than a number from 0 on is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(whole_number(&mut serde_json::Deserializer::from_str(value.get())).ok()))
    }
}

/// Replaces every escaped lone surrogate with U+FFFD.
pub(crate) fn replace_halves(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('\\') {
        mended.push_str(before);
        let escape = rest.get(before.len()..).unwrap_or_default();
        let (taken, kept) = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, escape.get(..12)),
            (Some(_), _) => (6, Some("\\ufffd")),
            // A backslash and the character that it escapes.
            (None, _) => (2, escape.get(..2)),
        };
        let Some(kept) = kept else { return text.to_owned() };
        mended.push_str(kept);
        rest = escape.get(taken..).unwrap_or_default();
    }
    mended + rest
}

/// The surrogate that is escaped at the start of a text.
fn surrogate(text: &str) -> Option<u16> {
    let unit = u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_bounded() {
        let deep = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(Object::from_body(deep(MAX_DEPTH - 1).as_bytes()).is_ok());
        let error = Object::from_body(deep(MAX_DEPTH).as_bytes()).unwrap_err();
        assert!(error.message.contains("nested"), "{error}");
        assert!(Object::from_body("{\"a\":\"[[\\\"[[\"}".as_bytes()).is_ok());

        let fields: Vec<String> = (0..=MAX_FIELDS).map(|at| format!("\"{at}\":1")).collect();
        let body = format!("{{{}}}", fields.join(","));
        assert!(Object::from_body(body.as_bytes()).unwrap_err().message.contains("1024 fields"));

        let body = format!("{{\"a\":[{}1]}}", "1,".repeat(MAX_ITEMS));
        let error = Object::from_body(body.as_bytes()).unwrap().items("a").unwrap_err();
        assert_eq!((&*error.param, &*error.message), ("a", "`a` has more than 16384 items"));
    }

    #[test]
    fn errors_name_the_path() {
        let body = br#"{"a": [{"b": 1}], "c": null, "d": 1, "d": "last"}"#;
        let mut object = Object::from_body(body).unwrap();
        assert!(object.take("c").is_none());
        assert_eq!(object.string("d"), Ok(Some("last".to_owned())));
        let mut inner = object.items("a").unwrap().remove(0).object().unwrap();
        let error = inner.string("b").unwrap_err();
        assert_eq!((&*error.param, &*error.message), ("a[0].b", "`a[0].b` has to be a string"));
        for body in [&b"[]"[..], b"", b"{", b"{} {}", b"\xff", b"nul"] {
            assert_eq!(Object::from_body(body).unwrap_err().param, "body");
        }
    }

    #[test]
    fn whole_numbers_have_a_sign() {
        for (json, number) in [
            ("1", Some(1)),
            ("-1", Some(-1)),
            ("2.0", Some(2)),
            ("--1", None),
            ("0.5", None),
            ("\"1\"", None),
            ("9223372036854775808", None),
        ] {
            let body = format!("{{\"a\": {json}}}");
            let read = Object::from_body(body.as_bytes()).and_then(|mut object| object.integer("a"));
            assert_eq!(read.ok(), number.map(Some), "{json}");
        }
    }

    #[derive(Debug, Default)]
    struct Known1 {
        text: Text,
        count: Count,
    }

    impl<'de> Known<'de> for Known1 {
        fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
            match name {
                "text" => self.text = map.next_value()?,
                "count" => self.count = map.next_value()?,
                _ => return Ok(false),
            }
            Ok(true)
        }
    }

    #[test]
    fn an_answer_may_have_other_types_and_fields() {
        let read = |json| serde_json::from_str::<Open<'_, Known1>>(json).unwrap();
        let open = read(r#"{"text": "a\ud83d", "x": {"y": 1}, "count": 2.0, "z": null}"#);
        assert_eq!((open.known.text.0.as_str(), open.known.count.0), ("a\u{fffd}", Some(2)));
        assert_eq!(open.rest.len(), 1);
        let open = read(r#"{"text": ["a"], "count": -1}"#);
        assert_eq!((open.known.text.0.as_str(), open.known.count.0), ("", None));
        for json in ["null", "[1]", "\"a\"", "1.5", "true", "-1", "1"] {
            assert!(read(json).rest.is_empty());
        }
    }
}
