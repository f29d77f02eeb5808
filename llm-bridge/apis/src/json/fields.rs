//! The fields of JSON objects, in their order and as they are written.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

use crate::RawJson;

/// The maximum number of fields in an object of a request, but for those in schemas.
pub(super) const MAX_FIELDS: usize = 1024;

/// A field's name, borrowed where it has no escapes.
#[derive(Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

pub(super) struct AllFields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

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
