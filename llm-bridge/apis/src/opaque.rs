//! An opaque part as JSON: an object, to which fields can be added.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Provider, RawJson};

#[derive(Serialize)]
struct Written<'p> {
    api: Provider,
    json: &'p RawJson,
}

#[derive(Deserialize)]
struct Read {
    api: Provider,
    json: RawJson,
}

pub(crate) fn serialize<S: Serializer>(
    api: &Provider,
    json: &RawJson,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Written { api: *api, json }.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(Provider, RawJson), D::Error> {
    Read::deserialize(deserializer).map(|Read { api, json }| (api, json))
}
