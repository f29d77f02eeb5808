//! What an API has and the canonical types have not.

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

use crate::Provider;

/// Fields in which Toolrack itself says what happens to tools. Clients believe them, so that none is taken from a model server.
const OURS: [&str; 3] = ["x_toolrack", "event", "toolrack"];

/// How many of them an object may have: each is put in its place among the others, and looked for there. The rest is left out.
pub(crate) const MAX_FIELDS: usize = 4096;

/// Whether only Toolrack may write a field, with or without its place in front (`choice.event`). Some readers of JSON do not tell case.
pub(crate) fn is_ours(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    OURS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// A JSON text, kept as it was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// The JSON of a value that can be written as JSON; `null` for one that cannot.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self(serde_json::value::to_raw_value(value).unwrap_or_default())
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.0
    }
}

impl From<&RawValue> for RawJson {
    fn from(value: &RawValue) -> Self {
        Self(value.to_owned())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

/// Fields that only one API knows. They stand beside a canonical value and go back to the same API only, at the same place; to
/// another they are an [`Omission`](crate::Omission). A field that is canonical in its API is never among them.
///
/// A field that is canonical but has unknown fields inside is kept under its name with these alone: `{"stream_options": {"x": 1}}`.
///
/// As JSON: `{"api": "openai", "fields": {"x": 1}}`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Passing {
    #[serde(default)]
    api: Option<Provider>,
    #[serde(default, with = "fields")]
    fields: Vec<(Box<str>, RawJson)>,
}

impl Passing {
    /// Nothing.
    pub const fn none() -> Self {
        Self { api: None, fields: Vec::new() }
    }

    /// An API's fields, of which there are none yet.
    pub const fn of(api: Provider) -> Self {
        Self { api: Some(api), fields: Vec::new() }
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Sets a field, where there is room for it. The fields are in the order of their names.
    pub fn push(&mut self, name: impl Into<Box<str>>, value: impl Into<RawJson>) {
        let (name, value) = (name.into(), value.into());
        match self.fields.binary_search_by(|(field, _)| field.cmp(&name)) {
            Ok(at) => {
                if let Some(field) = self.fields.get_mut(at) {
                    field.1 = value;
                }
            }
            Err(at) if self.fields.len() < MAX_FIELDS => self.fields.insert(at, (name, value)),
            Err(_) => {}
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.fields.binary_search_by(|(field, _)| (**field).cmp(name)).ok()
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<RawJson> {
        let at = self.place(name)?;
        Some(self.fields.remove(at).1)
    }

    /// About how many bytes the fields take in memory.
    pub(crate) fn size(&self) -> usize {
        self.fields.iter().map(|(name, value)| name.len() + value.get().len()).sum()
    }

    /// Sets the fields of `others` that may be sent to an API.
    pub(crate) fn extend(&mut self, others: &Self, api: Provider) {
        for (name, value) in others.to(api) {
            self.push(name.clone(), value.clone());
        }
    }

    /// Adds the fields of others of the same API that are not there yet.
    pub(crate) fn add(&mut self, others: Self) {
        if self.is_empty() {
            *self = others;
        } else if self.api == others.api {
            for (name, value) in others.fields {
                if self.place(&name).is_none() {
                    self.push(name, value);
                }
            }
        }
    }

    /// The fields that may be sent to an API: all if they are its own, otherwise none.
    pub fn to(&self, api: Provider) -> &[(Box<str>, RawJson)] {
        if self.api == Some(api) { &self.fields } else { &[] }
    }

    /// A field that may be sent to an API.
    pub fn get(&self, api: Provider, name: &str) -> Option<&RawJson> {
        let at = self.place(name).filter(|_| self.api == Some(api))?;
        self.fields.get(at).map(|(_, value)| value)
    }

    /// The names of the fields that may not be sent to an API.
    pub fn not_to(&self, api: Provider) -> impl Iterator<Item = &str> {
        let fields = if self.api == Some(api) { &[] } else { self.fields.as_slice() };
        fields.iter().map(|(name, _)| &**name)
    }
}

impl PartialEq for Passing {
    /// Nothing equals nothing, whichever API it is of.
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields && (self.is_empty() || self.api == other.api)
    }
}

impl Eq for Passing {}

/// The fields of [`Passing`] that an API takes, but for those that the writer writes itself. For `#[serde(flatten)]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'p> {
    pub(crate) fields: &'p [(Box<str>, RawJson)],
    pub(crate) but: &'static [&'static str],
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.fields.iter().filter(|(name, _)| !self.but.contains(&&**name)) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Fields as a JSON object.
mod fields {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::RawJson;

    pub(super) fn serialize<S: Serializer>(
        fields: &[(Box<str>, RawJson)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
    }

    /// In the order of their names, in which they are looked up.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(Box<str>, RawJson)>, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a51_of_fields_that_only_an_api_knows_so_many_are_kept() {
        let began = Instant::now();
        let mut passing = Passing::of(Provider::OpenAi);
        // Each would push all others aside.
        for number in (0..100_000).rev() {
            passing.push(format!("x{number:06}"), RawJson::of(&number));
        }
        assert_eq!(passing.to(Provider::OpenAi).len(), MAX_FIELDS);
        let last = |name: &str| passing.get(Provider::OpenAi, name).map(RawJson::get);
        assert_eq!((last("x099999"), last("x000000"), last("y")), (Some("99999"), None, None));
        assert_eq!(passing.get(Provider::Gemini, "x099999"), None);
        let mut all = passing.clone();
        all.push("x099999", RawJson::of(&1));
        all.add(passing.clone());
        assert_eq!(all.get(Provider::OpenAi, "x099999").map(RawJson::get), Some("1"));
        assert_eq!(all.remove("x099999").map(|value| value.get().to_owned()).as_deref(), Some("1"));
        assert_eq!((all.remove("x099999"), all.to(Provider::OpenAi).len()), (None, MAX_FIELDS - 1));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
