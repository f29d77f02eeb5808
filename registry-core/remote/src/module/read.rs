//! How settings are written in a file: seconds as numbers, names as a list or a text.

use std::{collections::BTreeSet, fmt, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

/// A number of seconds, whole or not, greater than 0.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| de::Error::custom("expected a number of seconds greater than 0"))
}

/// The same, where it is given.
pub(super) fn some_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    seconds(deserializer).map(Some)
}

/// Names, in a list or in a text with commas.
pub(super) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    struct ListOrText;
    impl<'de> Visitor<'de> for ListOrText {
        type Value = BTreeSet<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of names, or a text with names and commas")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<BTreeSet<String>, E> {
            Ok(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<BTreeSet<String>, A::Error> {
            let mut names = BTreeSet::new();
            while let Some(name) = list.next_element()? {
                names.insert(name);
            }
            Ok(names)
        }
    }
    deserializer.deserialize_any(ListOrText)
}

/// The same, where it is given.
pub(super) fn some_names<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeSet<String>>, D::Error> {
    names(deserializer).map(Some)
}
