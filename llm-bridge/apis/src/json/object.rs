//! Requests of clients: objects whose fields are taken one by one.

use std::{borrow::Cow, fmt};

use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use super::fields::{AllFields, Entries};
use crate::{BadRequest, Passing, Provider, RawJson, number::whole_number};

/// The maximum depth of a request's body; what is parsed into a [`Value`] later never exceeds the limit of `serde_json`.
const MAX_DEPTH: usize = 100;
/// The maximum size of a value that is kept as a tree, such as a schema, in bytes; in memory it takes a multiple of it.
const MAX_VALUE: usize = 1 << 20;
/// The maximum number of items in an array of a request, but for those in schemas.
const MAX_ITEMS: usize = 16_384;

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
        // The names of the fields are read here only: half of a character, as `\ud83d`, is JSON and no text.
        let source = value.get();
        let AllFields(fields) =
            serde_json::from_str(source).map_err(|error| bad(format!("the body cannot be read: {error}")))?;
        Ok(Self { source, path: String::new(), fields })
    }

    /// The object with its fields' names in camel case.
    pub(crate) fn camel_case(mut self) -> Self {
        for (name, _) in &mut self.fields {
            if let Cow::Owned(camel) = camel_case(name) {
                *name = Cow::Owned(camel);
            }
        }
        self
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

    /// A field, which stays; null is none.
    pub fn get(&self, name: &str) -> Option<Field<'a>> {
        let (_, value) = self.fields.iter().rev().find(|(field, _)| field == name)?;
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
    /// A value that stands at this path.
    pub(crate) fn of(path: impl Into<String>, value: &'a RawValue) -> Self {
        Self { path: path.into(), value }
    }

    /// Where it stands in the request.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

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
        if self.value.get().len() > MAX_VALUE {
            return Err(self.bad(format_args!("is larger than {} MiB", MAX_VALUE >> 20)));
        }
        serde_json::from_str(self.value.get())
            .map_err(|error| self.bad(format_args!("cannot be read: {error}")))
    }

    fn parse<T: DeserializeOwned>(&self, what: &str) -> Result<T, BadRequest> {
        serde_json::from_str(self.value.get()).map_err(|_| self.bad(what))
    }
}

/// A name in camel case: protocol buffers take `topP` and `top_p` alike.
pub(crate) fn camel_case(name: &str) -> Cow<'_, str> {
    if !name.contains('_') {
        return Cow::Borrowed(name);
    }
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    Cow::Owned(camel)
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

#[cfg(test)]
mod tests {
    use super::{super::fields::MAX_FIELDS, *};

    #[test]
    fn a_body_is_bounded() {
        let deep = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(Object::from_body(deep(MAX_DEPTH - 1).as_bytes()).is_ok());
        let error = Object::from_body(deep(MAX_DEPTH).as_bytes()).unwrap_err();
        assert!(error.message.contains("nested"), "{error}");
        assert!(Object::from_body("{\"a\":\"[[\\\"[[\"}".as_bytes()).is_ok());

        let fields: Vec<String> = (0..=MAX_FIELDS).map(|at| format!("\"{at}\":1")).collect();
        let body = format!("{{{}}}", fields.join(","));
        let error = Object::from_body(body.as_bytes()).unwrap_err();
        assert!(error.param == "body" && error.message.contains("1024 fields"), "{error:?}");

        let error = Object::from_body(br#"{"\ud83d": 1}"#).unwrap_err();
        assert!(error.param == "body" && error.message.contains("hex escape"), "{error:?}");

        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_VALUE));
        let large = Object::from_body(body.as_bytes()).unwrap().take("a").unwrap();
        assert_eq!(large.value().unwrap_err().message, "`a` is larger than 1 MiB");
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
}
